"""Graph-to-graph passes and their manager."""
from kera_hw.passes.manager import PassError, run_pipeline
from kera_hw.passes.pipeline import PASSES, PIPELINES, pipeline

__all__ = ["PASSES", "PIPELINES", "PassError", "pipeline", "run_pipeline"]
