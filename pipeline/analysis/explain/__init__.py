"""One explanation of a cluster: the few causes that turn the stacks before into the stacks after. Pure."""
