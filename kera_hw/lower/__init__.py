"""Graph to loop program: each operation's tensors become buffers, its meaning loops of scalar operations."""
