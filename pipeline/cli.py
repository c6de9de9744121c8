"""The ``smidgen`` command: finds the subcommand, and reports every failure in one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys

import click

from pipeline import __version__
from pipeline.commands.lazy_group import LazyGroup
from pipeline.model.errors import SmidgenError
from pipeline.model.threads import SINGLE_THREADED
from pipeline.settings.config import redact

COMMANDS = {
    "demo": ("loadgen.demo.command", "Watch the whole pipeline catch one slow commit of a live service."),
    "up": ("pipeline.commands.up", "Run the whole pipeline on this machine; other commands find it."),
    "worker": ("pipeline.commands.worker", "Run one or more stages of the pipeline."),
    "agent": (
        "agents.commands.agent_group",
        "Sample a process, import stack samples, or receive webhooks, and publish them.",
    ),
    "gateway": ("agents.commands.gateway", "Take profiles that existing agents push, and publish them."),
    "changes": (
        "agents.commands.changes",
        "Publish deployed commits of a git repository, once or as they come.",
    ),
    "flips": ("agents.commands.flips", "Publish what flips in a file of flags, once or as it comes."),
    "expect": ("agents.commands.silences", "Announce a cost: silence regressions just that much."),
    "mute": ("agents.commands.silences", "Mute regressions until a time, with an owner."),
    "feedback": ("agents.commands.feedback", "Answer an event, and see what answers teach."),
    "embedded": ("pipeline.commands.embedded", "Run a broker and a store on loopback until Ctrl-C."),
    "topics": ("pipeline.commands.topics", "Create or check the topics of topics.yaml."),
    "store": ("pipeline.commands.store", "Create or upgrade the tables."),
    "stage": ("pipeline.commands.stage", "Show where a stage stands, have it skip messages, or go back."),
    "events": ("pipeline.commands.events", "Read regression events."),
    "dashboard": ("pipeline.commands.dashboard", "Look into regressions in a browser, and answer them."),
    "alerts": ("pipeline.commands.alerts", "Send events to chats, mailboxes, pagers, forges and trackers."),
    "why": ("pipeline.commands.why", "Explain a reported or dropped candidate, step by step."),
    "dlq": ("pipeline.commands.dlq", "List dead letters, or send them once more after a fix."),
    "doctor": ("pipeline.commands.doctor", "Check broker, store, clocks and lag, and say what to do."),
    "detectable": (
        "pipeline.commands.detectable",
        "Say which regressions a service's traffic lets workloads see.",
    ),
    "trial": ("pipeline.commands.trial", "Judge a change before its release, by trials of both sides."),
    "replay": ("agents.commands.replay", "Record requests, and send them to two builds at the same moment."),
    "benchmarks": ("agents.commands.benchmarks", "Find the commits that changed results of benchmarks."),
    "release": ("pipeline.commands.release", "Hold two releases against each other; gate a deployment."),
    "report": ("pipeline.commands.report", "Draw one regression as a page."),
    "gates": (
        "agents.commands.gates",
        "Map gates to the subroutines that read them, in Python source.",
    ),
    "score": ("loadgen.evaluation.command", "Hold events against a known truth."),
    "compare": ("loadgen.evaluation.command", "Show what only one of two runs reports."),
    "backtest": ("pipeline.commands.backtest", "Try settings on history: the pipeline over files."),
    "detect": ("pipeline.commands.detect", "Find every change point of plain series in a file."),
    "loadgen": ("loadgen.commands", "Simulate fleets whose truth is known."),
    "lab": ("loadgen.bench.lab.command", "Judge three commits of the demo's shop by replayed traffic."),
    "bench": ("loadgen.bench.command", "Measure speed on this machine, and accuracy."),
}
"""Subcommand → (module that defines it under its own name, one line of help); loaded when it is called."""

INNER = {
    "release": {
        "requests": (
            "agents.commands.release_requests",
            "Say whether requests cost more in a new release, and which.",
        ),
        "routes": ("agents.commands.routes", "Show which handler answers which request, by the source."),
    },
    "trial": {
        "bisect": ("agents.commands.bisect", "Find the commit that made a cost rise, by builds and runs."),
        "suggest": ("agents.commands.suggest", "Say whether commits are worth an experiment."),
    },
    "agent": {
        "plan": ("agents.commands.plan", "Say which sampling rate lets a service show a regression."),
        "webhooks": ("agents.commands.webhooks", "Receive webhooks of GitHub, GitLab and flag services."),
    },
}
"""Group → its commands that another package defines, as in COMMANDS."""

_EXTRAS = {"demo": "embedded", "up": "embedded", "embedded": "embedded", "lab": "embedded", "bench": "all"}
"""Command → extra that it needs besides ``server``, so that the first missing package names it at once."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Codes of ``OSError`` for a full disk or quota; the error of a command's own file names the file."""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="smidgen")
def smidgen() -> None:
    """Catch performance regressions as small as 0.005 % of a service's CPU, each once, with its cause."""


smidgen.table, smidgen.inner = COMMANDS, INNER


def main() -> None:
    """Run the command line: exit 0 on success, 1 on a finding, 2 on bad usage or input, 130 on Ctrl-C."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed: the next file that is opened would take its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    os.environ.update(SINGLE_THREADED | os.environ)  # before a command imports numpy
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; failures print one line on stderr."""
    try:
        result = smidgen.main(args=arguments, prog_name="smidgen", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return 2
    except click.ClickException as error:
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "smidgen"
        return _fail(f"{path}: {error.format_message()}")
    except SmidgenError as error:
        return _fail(f"smidgen: {error}")
    except ModuleNotFoundError as error:
        return _fail_without(error, arguments)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python wraps it amid the definition of a class
            return 130
        raise
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # lest what is left of it fails once more at the end
        return _fail(f"smidgen: standard output: {error.strerror}")
    return result if isinstance(result, int) else 0


def _fail_without(error: ModuleNotFoundError, arguments: list[str]) -> int:
    """Say what to install, unless the module that is missing is none of ours."""
    from pipeline.settings.extras import installation_hint

    hint = installation_hint(error.name or "", _EXTRAS.get(" ".join(arguments[:1]), ""))
    if hint is None:
        raise error
    return _fail(f"smidgen: {hint}")


def _fail(text: str) -> int:
    from pipeline.commands.terminal import (
        escape_controls,  # rich, which most commands that succeed do not need
    )

    click.echo(escape_controls(redact(" ".join(text.split()))), err=True)
    return 2
