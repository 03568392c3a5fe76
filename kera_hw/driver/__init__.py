"""Sessions that run the stages in order and keep what they produced."""
