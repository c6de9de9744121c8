"""Shared parts of several suites: builders, fleets, certificates, repositories, paths."""
