"""Child processes, tethered and ended in order, and background tasks of this process, supervised."""

from pipeline.processes.child import Child, end
from pipeline.processes.group import ChildFailed, Group, Process, tail_of
from pipeline.processes.interruption import stop_event, until_signal, until_stopped
from pipeline.processes.program import Output, run_bounded
from pipeline.processes.smidgen import smidgen_command, smidgen_environment
from pipeline.processes.supervisor import TaskSupervisor

__all__ = [
    "Child",
    "ChildFailed",
    "Group",
    "Output",
    "Process",
    "TaskSupervisor",
    "end",
    "run_bounded",
    "smidgen_command",
    "smidgen_environment",
    "stop_event",
    "tail_of",
    "until_signal",
    "until_stopped",
]
