"""What can be injected into a fleet: one function a kind, each returns an ``Injected``."""
