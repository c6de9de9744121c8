"""Simulated trials whose truth is known, and what each model makes of them."""
