"""Accuracy: events held against a known truth. Matching and figures are pure functions."""
