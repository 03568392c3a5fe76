"""What a target is: lowerings, refusals with reasons, artefacts."""
