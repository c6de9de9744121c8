"""Telemetry of a process: metrics and logs."""
