"""Quality of the workload live: reported steps of one process, and false events."""
