"""What a target is: which operations it lowers, which it refuses and why, on which types."""
from kera_hw.target.table import GAP, Instance, Refusal, TargetTable, instance_of

__all__ = ["GAP", "Instance", "Refusal", "TargetTable", "instance_of"]
