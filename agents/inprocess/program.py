"""A Python program under the sampler: ``python -m smidgen.inprocess --service shop -- app.py ARGUMENTS``."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import runpy
import sys

from agents.inprocess.control import start
from agents.inprocess.options import read_options
from agents.inprocess.senders import check_target


def main() -> None:
    """Run a script, or with ``-m`` a module, as Python would, and sample it."""
    parser = argparse.ArgumentParser(prog="python -m smidgen.inprocess", allow_abbrev=False)
    parser.add_argument("--service", help="service that the samples belong to (SMIDGEN_SERVICE)")
    parser.add_argument("--host", help="host (this machine's name)")
    parser.add_argument("--release", help="release that runs")
    parser.add_argument("--rate-hz", help="samples a second and thread (20)")
    parser.add_argument("--interval", help="one message per interval (10s)")
    parser.add_argument("--send-to", help="http://host:port, kafka://host:port or file:path")
    parser.add_argument("--wall", action="store_true", default=None, help="count waiting threads too")
    parser.add_argument("--budget", help="largest share of one CPU that sampling may take (0.01)")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- SCRIPT|-m MODULE [ARGUMENT...]")
    arguments = vars(parser.parse_args())
    command = arguments.pop("command")[1:] if arguments["command"][:1] == ["--"] else arguments.pop("command")
    if command[:1] in ([], ["-m"]) and len(command) < 2:
        parser.error("give a script, or -m and a module, after --")
    try:
        check_target(read_options(arguments, os.environ).send_to)
    except ValueError as error:
        parser.error(str(error))
    if command[0] != "-m" and not os.path.exists(command[0]):
        parser.error(f"{command[0]}: no such file")
    if command[0] == "-m" and (missing := _missing_module(command[1])):
        sys.exit(f"{sys.executable}: {missing}")  # 1, as from Python
    logging.getLogger("smidgen").addHandler(logging.StreamHandler())
    start(**arguments)
    _run(command)


def _missing_module(name: str) -> str:
    """Return why a module cannot be run, empty if it can; what it imports may still be missing."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        return f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
    return "" if spec else f"No module named {name}"


def _run(command: list[str]) -> None:
    if command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = command
    sys.path[0] = os.path.dirname(os.path.abspath(command[0]))
    runpy.run_path(command[0], run_name="__main__")
