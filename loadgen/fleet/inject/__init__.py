"""What can be injected into a fleet: one module a kind, each a function that returns an ``Injected``."""
