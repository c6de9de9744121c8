"""Simulated trials whose truth is known, and the errors of each model on them."""
