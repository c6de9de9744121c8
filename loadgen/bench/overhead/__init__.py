"""Cost of sampling real programs, and error of its shares against the programs' own measurements."""
