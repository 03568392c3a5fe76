"""How deep the regions of an export nest, which whatever walks them recursively has room for."""
from __future__ import annotations

from functools import lru_cache

from kera_hw.graph.node import Export, Region, regions_of
from kera_hw.support import Diagnostic, KeraError, toposort

MAX_NESTING = 200


def check_nesting(export: Export) -> None:
    """Raises KeraError (K0702) for an export that nests deeper than is followed."""
    if _depth(export.region) > MAX_NESTING:
        message = f"`{export.name}` nests calls, loops and branches deeper than {MAX_NESTING} levels."
        raise KeraError([Diagnostic("K0702", message)])


@lru_cache(maxsize=256)
def _depth(region: Region) -> int:
    """How deep regions nest within each other."""

    def nested(item: Region) -> list[Region]:
        return [inner for node in item.nodes() for inner in regions_of(node)]

    depths: dict[Region, int] = {}
    for item in toposort([region], nested):
        depths[item] = 1 + max((depths[inner] for inner in nested(item)), default=0)
    return depths[region]
