"""The typed tree as a graph: functions, control, places, observations."""
