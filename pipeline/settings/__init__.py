"""Settings of a process: environment, topics, workloads, names, quotas."""
