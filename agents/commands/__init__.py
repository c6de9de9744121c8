"""The command line of the agents."""
