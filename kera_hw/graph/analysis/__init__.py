"""Facts about graphs that passes and planners ask for."""
from kera_hw.graph.analysis.ranges import Interval, RegionRanges

__all__ = ["Interval", "RegionRanges"]
