"""The kera command: parse the request, call the driver, print the result."""
