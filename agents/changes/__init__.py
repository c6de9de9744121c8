"""Deployed commits of a git repository as change messages, with the subroutines that each one modified."""
