"""One agent for a whole host: processes found by rules, sampled within a budget, published by service."""

from agents.host.listing import list_processes
from agents.host.rules_file import HostConfig, load_host_config
from agents.host.service import HostOptions, run_host_agent

__all__ = ["HostConfig", "HostOptions", "list_processes", "load_host_config", "run_host_agent"]
