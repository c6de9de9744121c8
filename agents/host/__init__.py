"""One agent for a whole host: processes found by rules, sampled within a budget, published by service."""

from agents.host.listing import list_processes
from agents.host.rules_file import HostConfig
from agents.host.rules_source import load_rules
from agents.host.service import HostOptions, run_host_agent

__all__ = ["HostConfig", "HostOptions", "list_processes", "load_rules", "run_host_agent"]
