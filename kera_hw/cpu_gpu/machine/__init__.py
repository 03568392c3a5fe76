"""What all processors share: code over virtual registers, their allocation, and its check."""
