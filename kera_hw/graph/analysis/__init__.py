"""Facts about graphs that passes and planners ask for."""
from kera_hw.graph.analysis.ranges import Interval, Ranges
from kera_hw.graph.analysis.work import Work

__all__ = ["Interval", "Ranges", "Work"]
