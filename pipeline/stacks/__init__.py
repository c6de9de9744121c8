"""Stacks as arrays: one index, subtrees, overlap, differences, names of frames. Pure."""
