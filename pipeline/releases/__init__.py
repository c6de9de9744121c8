"""Differences between releases: by gCPU, and by requests."""
