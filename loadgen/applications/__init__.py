"""Experiment of Liao et al. (§6): regressions injected into real web applications, from logs and CPU time."""
