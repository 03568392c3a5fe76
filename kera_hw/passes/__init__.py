"""Graph-to-graph passes and their manager."""
from kera_hw.passes.manager import Optimised, PassError, PassRun, run_pipeline
from kera_hw.passes.pipeline import PASSES, PIPELINES, pipeline

__all__ = ["PASSES", "PIPELINES", "Optimised", "PassError", "PassRun", "pipeline", "run_pipeline"]
