"""A small real web service to profile, and the history of commits that the demo deploys."""
