"""Extensions: a new filter, kernel, format, metric kind, topic, target, bench or command takes few files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.paths import ROOT

MOST_FILES = 3


@dataclass(frozen=True)
class Line:
    """A line to be added to a file, after one that stands there."""

    anchor: str
    added: str


@dataclass(frozen=True)
class Extension:
    """New files and files with a line added, a program that uses the extension, and what it prints."""

    files: Mapping[str, str | Line]
    program: str
    prints: str

    def add_to(self, folder: Path) -> None:
        """Write the files into a copy of the source."""
        for name, text in self.files.items():
            path = folder / name
            if isinstance(text, Line):
                source = path.read_text(encoding="utf-8")
                assert source.count(text.anchor) == 1, f"{name}: {text.anchor}"
                path.write_text(source.replace(text.anchor, f"{text.anchor}\n{text.added}"), encoding="utf-8")
            else:
                assert not path.exists()
                path.write_text(dedent(text), encoding="utf-8")


EXTENSIONS = {
    "filter": Extension(
        {
            "pipeline/analysis/filters/never.py": """
                from pipeline.model import Decision

                def decide(candidates, case):
                    return [Decision("never", False, 0.0, 1.0, "never") for _ in candidates]
                """,
            "pipeline/model/steps.py": Line(
                "STEPS: tuple[Step, ...] = (",
                '    Step("never", "filter", "Ever?", codes={"never": Code("never")}),',
            ),
        },
        """
        from pipeline.analysis.filters.decision import filter_of
        from pipeline.model.steps import ABLATABLE, FILTERS

        step = FILTERS[0]
        print(step.key, step.key in ABLATABLE, filter_of(step)([None], None)[0].passed)
        """,
        "never True False",
    ),
    "kernel": Extension(
        {
            "agents/sampling/kernels/idle.py": """
                from agents.sampling.kernels.base import EndedRun

                class Idle:
                    def __init__(self, sampling):
                        self._clock = sampling.clock

                    def start(self, pid, wake):
                        return EndedRun(self._clock(), f"{pid} is left alone")
                """,
            "agents/sampling/kernels/__init__.py": Line(
                "register(async_profiler.NAME, async_profiler.AsyncProfiler, Runtime.JAVA)",
                'from agents.sampling.kernels.idle import Idle\nregister("idle", Idle)',
            ),
        },
        """
        from pathlib import Path
        from agents.sampling.kernels import Sampling, make_kernel

        kernel = make_kernel("idle", Sampling(Path(), lambda: 0.0, rate_hz=1, longest_s=1))
        print(kernel.start(7, lambda: None).complaint())
        """,
        "7 is left alone",
    ),
    "format": Extension(
        {
            "agents/profiles/formats/words.py": """
                from agents.profiles.formats.base import Measure, Reading, Sample

                class WordsFormat:
                    name, content = "words", "words"

                    def recognises(self, head):
                        return head.startswith(b"words ")

                    def read(self, source, value):
                        lines = (text.split() for _, text in source.lines())
                        return Reading(Measure(), (Sample(tuple(words[1:]), 1) for words in lines))
                """,
            "agents/profiles/formats/__init__.py": Line(
                "register(collapsed.CollapsedFormat())",
                "from agents.profiles.formats.words import WordsFormat\nregister(WordsFormat())",
            ),
        },
        """
        from agents.profiles.formats import AUTO, find_format, parse

        data = b"words main work\\nwords main work\\n"
        print(parse(find_format(AUTO, data), data).stacks)
        """,
        "{('main', 'work'): 2}",
    ),
    "metric kind": Extension(
        {
            "pipeline/model/metric_kind.py": Line(
                "METRIC_KINDS: Mapping[MetricKind, KindMeasure] = {",
                '    "query": KindMeasure(gcpu=True, prefix="query="),',
            ),
        },
        """
        from pipeline.model import is_gcpu
        from pipeline.model.frames import element, series_of

        print(is_gcpu("query"), *series_of(element("query", "select")))
        """,
        "True query select",
    ),
    "topic": Extension(
        {
            "topics.yaml": Line(
                "  readers: [detect, releases]",
                "notes: {name: notes, key: service, partitions: 3, retention: 1d, max_message: 1MiB,"
                " writers: [outside], readers: [outside]}",
            ),
            "pipeline/messages/schema/catalogue.py": Line(
                "CHANNELS: Mapping[str, Channel] = {",
                '    "notes": Channel("Notes", "What people note.", (Message("note", inputs.Verdict),)),',
            ),
        },
        """
        import yaml
        from pipeline.messages.schema.generate import generated_files
        from pipeline.settings.topics import load_topics

        files = generated_files(load_topics())
        channel = yaml.safe_load(files["asyncapi.yaml"])["channels"]["notes"]
        print(channel["title"], channel["bindings"]["kafka"]["partitions"], "schemas/note.json" in files)
        """,
        "Notes 3 True",
    ),
    "alert target": Extension(
        {
            "pipeline/delivery/alerts/targets/siren.py": """
                from typing import Literal
                from pipeline.delivery.alerts.targets.base import Target

                class Siren(Target):
                    kind: Literal["siren"]
                    decibels: int

                    async def send(self, note, thread, http):
                        return f"{self.decibels} dB"
                """,
            "pipeline/delivery/alerts/targets/__init__.py": Line(
                '"""Kinds of targets by their name in the file of rules."""',
                "from pipeline.delivery.alerts.targets.siren import Siren\nKINDS['siren'] = Siren",
            ),
        },
        """
        import asyncio
        from pathlib import Path
        from pipeline.delivery.alerts.rules_file import load_rules

        rules = "targets: {roof: {kind: siren, decibels: 90}}\\nrules: [{to: [roof]}]\\n"
        Path("rules.yaml").write_text(rules)
        target = load_rules(Path("rules.yaml"), {}).targets["roof"]
        print(asyncio.run(target.send(None, "", None)))
        """,
        "90 dB",
    ),
    "bench": Extension(
        {
            "loadgen/bench/nothing.py": """
                import click

                @click.command()
                def nothing():
                    "Measure nothing."
                    print("0.0 s")
                """,
            "loadgen/bench/command.py": Line(
                "OF_THEIR_OWN = {", '    "nothing": ("loadgen.bench.nothing", "Time of nothing."),'
            ),
        },
        """
        from pipeline.cli import run

        run(["bench", "nothing"])
        """,
        "0.0 s",
    ),
    "command": Extension(
        {
            "pipeline/commands/hello.py": """
                import click

                @click.command()
                def hello():
                    "Greet."
                    print("hello")
                """,
            "pipeline/cli.py": Line("COMMANDS = {", '    "hello": ("pipeline.commands.hello", "Greet."),'),
        },
        """
        from pipeline.cli import run

        run(["hello"])
        """,
        "hello",
    ),
}


@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_extension_takes_few_files(name: str, tmp_path: Path) -> None:
    extension = EXTENSIONS[name]
    source, work = tmp_path / "source", tmp_path / "work"
    for package in ("pipeline", "agents", "loadgen"):
        shutil.copytree(ROOT / package, source / package, symlinks=True)
    shutil.copy2(ROOT / "topics.yaml", source)
    extension.add_to(source)
    work.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", dedent(extension.program)],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.stdout.strip(), run.returncode) == (extension.prints, 0), run.stderr
    assert len(extension.files) <= MOST_FILES
