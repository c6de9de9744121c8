"""Experiments before a release: trials, bisection, selection of what to test."""
