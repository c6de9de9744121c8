"""Statistics that several rooms share: robust scale, bootstrap, isotonic fits, always-valid bounds."""
