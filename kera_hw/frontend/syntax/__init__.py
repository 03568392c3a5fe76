"""The syntax tree: kinds, green nodes, red nodes, typed views (``ast``), the formatter."""
from kera_hw.frontend.syntax import ast
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.frontend.syntax.red import SyntaxNode, SyntaxToken

__all__ = ["SyntaxKind", "SyntaxNode", "SyntaxToken", "ast"]
