"""The command line of the agents: ``smidgen agent …`` and ``smidgen changes``."""

from agents.commands.agent import agent
from agents.commands.changes import changes
from agents.commands.fleet import list_agents
from agents.commands.host import host
from agents.commands.logs import logs
from agents.commands.plan import plan
from agents.commands.webhooks import webhooks

agent.add_command(host)
agent.add_command(list_agents)
agent.add_command(logs)
agent.add_command(plan)
agent.add_command(webhooks)

__all__ = ["agent", "changes"]
