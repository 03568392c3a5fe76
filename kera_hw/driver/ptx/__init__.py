"""PTX to run and to take away: the target, and what a build for it writes."""
