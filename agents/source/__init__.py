"""Source code and its history: changes, gates, routes."""
