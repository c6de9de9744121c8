"""Kinds of injections into a fleet: one function a kind, each returns an ``Injected``."""
