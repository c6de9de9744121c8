"""Accuracy against known truth: scores of one run, the suite of many, and what single parts are worth."""
