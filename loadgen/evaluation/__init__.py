"""Accuracy against known truth: scores of one run, the suite of many runs, and the worth of single parts."""
