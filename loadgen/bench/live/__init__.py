"""How well the workload live does: steps of one process, and false events."""
