"""Samplers: programs that look at a process from outside and print its stacks."""
