"""Finished runs of an accuracy suite, kept beside its result until the result is written."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import orjson

from loadgen.evaluation.suite.runs import Job, Run
from loadgen.terminal import read_file
from pipeline.files.outputs import write_output
from pipeline.messages import fields
from pipeline.model.errors import ConfigError, InvalidMessage, file_errors


class KeptRuns:
    """File with one JSON object a line: the job and its run."""

    def __init__(self, out: Path) -> None:
        self._path = out.with_name(f"{out.name}.runs")

    def read(self) -> dict[Job, Run]:
        """Return the kept runs; a truncated last line is ignored.

        Raises:
            ConfigError: there is no such file, or it holds something else.
        """
        try:
            *lines, _ = read_file(self._path).split(b"\n")
            return dict(_entry(line) for line in lines)
        except InvalidMessage as error:
            raise ConfigError(f"{self._path}: {error}") from None

    def start(self, known: dict[Job, Run]) -> None:
        """Begin the file anew with the runs ``known``.

        Raises:
            ConfigError: it cannot be written.
        """
        write_output(self._path, _lines(known))

    def add(self, job: Job, run: Run) -> None:
        """Keep one more run.

        Raises:
            ConfigError: it cannot be written.
        """
        with file_errors(self._path), self._path.open("ab") as file:
            file.write(_lines({job: run}))

    def discard(self) -> None:
        """Remove the file: the result holds all runs."""
        self._path.unlink(missing_ok=True)


def _lines(runs: dict[Job, Run]) -> bytes:
    lines = (orjson.dumps({"job": asdict(job), "run": run}) + b"\n" for job, run in runs.items())
    return b"".join(lines)


def _entry(line: bytes) -> tuple[Job, Run]:
    raw = fields.parse_object(line)
    job, run = raw.get("job"), raw.get("run")
    if not isinstance(job, dict) or not isinstance(run, dict):
        raise InvalidMessage("each line should be an object with a job and a run")
    steps = [fields.texts(job, name, optional=False) for name in ("workloads", "without")]
    return Job(fields.text(job, "scenario"), fields.integer(job, "seed"), *steps), run
