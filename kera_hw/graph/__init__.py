"""Content-addressed graphs: nodes, regions, exports and their file format."""
from kera_hw.graph.keg_read import read_keg
from kera_hw.graph.keg_write import write_keg
from kera_hw.graph.node import (
    Export,
    Graph,
    Node,
    Origin,
    Ref,
    Region,
    StateVar,
    regions_in_order,
    regions_of,
    signature,
)
from kera_hw.graph.printer import print_graph, short_hash
from kera_hw.graph.probes import only_probes, probes_of, unmarked, with_probes, without_probes
from kera_hw.graph.splice import splice
from kera_hw.graph.store import Store
from kera_hw.graph.verifier import verify_graph, verify_region

__all__ = [
    "Export", "Graph", "Node", "Origin", "Ref", "Region", "StateVar", "Store", "only_probes", "print_graph",
    "probes_of", "read_keg", "regions_in_order", "regions_of", "short_hash", "signature",
    "splice", "unmarked", "verify_graph", "verify_region", "with_probes", "without_probes", "write_keg",
]
