"""``smidgen agent``: the commands that a base install runs, in one group.

The other commands of this package are modules of their own, so that each is imported without the rest.
"""

from agents.commands.agent import agent
from agents.commands.fleet import list_agents
from agents.commands.host import host
from agents.commands.logs import logs

agent.add_command(host)
agent.add_command(list_agents)
agent.add_command(logs)

__all__ = ["agent"]
