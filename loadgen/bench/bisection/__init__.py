"""Simulated bisections whose truth is known, by posterior and by plain binary search."""
