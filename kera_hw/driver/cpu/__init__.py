"""Machine code to take away: what a build for a processor writes."""
