"""Broker and store on loopback, for the demo, tests and a first look."""
