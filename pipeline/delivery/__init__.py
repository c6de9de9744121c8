"""Delivery of regression events to people and programs: alerts and the client."""
