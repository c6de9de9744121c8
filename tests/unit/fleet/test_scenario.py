"""Scenario files, the command, what it writes and publishes, and the figures."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from loadgen.evaluation.reading import read_truth
from loadgen.fleet.figures import averaged, draw_figures, figure_1, moments
from loadgen.fleet.inject.registry import INJECTORS
from loadgen.fleet.publish import messages
from loadgen.fleet.scenario import DELTAS, PRESETS, Scenario, ServersSpec, load_scenario, preset_names
from loadgen.fleet.simulate import simulate
from loadgen.fleet.streams import Streams
from loadgen.fleet.timeline import Timeline
from pipeline.backtest.dataset import read_dataset
from pipeline.cli import run
from pipeline.counting.count import count_samples
from pipeline.messages.inputs import decode_change
from pipeline.messages.measurements import decode_metric_points, decode_profile
from pipeline.model.errors import ConfigError
from tests.support.paths import ROOT

MALFORMED = {
    "outside of time": ("name: x\nstart: 0\n", "start: should lie between 2000 and 2100"),
    "windows without end": (
        "name: x\nduration: 3650d\nwindow: 1s\nstack_window: 1s\n",
        "duration: 315360000 windows are more than 100000",
    ),
    "unknown key": ("name: x\nseeed: 3\n", ":2: seeed: unknown key; known keys are changes, duration"),
    "unknown nested key": ("name: x\ngraph:\n  subrutines: 3\n", ":3: graph.subrutines: unknown key"),
    "key twice": ("name: x\nname: y\n", ":2: key 'name' stands twice"),
    "not YAML": ("name: [", ":1:"),
    "a list": ("- 1\n", ":1: should be a mapping"),
    "no name": ("service: x\n", ":1: name: is missing"),
    "unknown kind": ("name: x\ninject:\n  - {kind: stepp}\n", ":3: inject.0.kind: should be 'step'"),
    "key of an injection": (
        "name: x\ninject:\n  - {kind: step}\n  - kind: gradual\n    delte: [1, 2]\n",
        ":5: inject.1.delte: unknown key; known keys are between, config, count, delta, duration, kind",
    ),
    "key of another kind": (
        "name: x\ninject:\n  - {kind: step, duration: [1h, 2h]}\n",
        ":3: inject.0: duration: means nothing for kind step",
    ),
    "unknown type": (
        "name: x\ninject:\n  - {kind: cost_shift, types: [mov]}\n",
        ":3: inject.0: types: 'mov' is none of move, rename",
    ),
    "delta upside down": (
        "name: x\ninject:\n  - {kind: step, delta: [0.2, 0.1]}\n",
        ":3: inject.0: delta: should be [low, high]",
    ),
    "two groups of one name": (
        "name: x\ninject:\n  - {kind: step}\n  - {kind: step}\n",
        "inject: two groups are called 'step'",
    ),
    "wrong duration": ("name: x\nduration: fortnight\n", ":2: duration: should be a duration such as 30m"),
    "uneven windows": ("name: x\nwindow: 7m\n", "a stack window whole windows"),
    "wrong start": ("name: x\nstart: yesterday\n", ":2: start: not an ISO 8601 time"),
    "generations": (
        "name: x\nservers:\n  generations:\n    - {share: 0.5, cpu: 0.4, variance: 0}\n",
        ":2: servers: generations: shares should add up to 1, not 0.5",
    ),
    "too many endpoints": ("name: x\ngraph: {subroutines: 20, endpoints: 9}\n", ":2: graph: subroutines:"),
    "too many samples": (
        "name: x\nservers: {count: 9000000}\nsamples_per_minute: 60\n",
        "samples in a window",
    ),
}


@pytest.mark.parametrize(("text", "message"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_scenario_is_named_by_line_and_key(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(text)
    code = run(["loadgen", "fleet", "--scenario", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "o")])
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert f"s.yaml{message}" in captured.err or message in captured.err
    assert "s.yaml:" in captured.err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--scenario", "tinny", "--out", "o"],
            "no scenario 'tinny': neither a file nor one of auto",
        ),
        (["--scenario", "tiny"], "nothing to do: give --out, --publish or both"),
        (["--scenario", "tiny", "--seed", "-1", "--out", "o"], "--seed"),
        (["--scenario", "tiny", "--publish", "--broker", "host:port"], "broker: should be host:port"),
        (["--scenario", "tiny", "--publish", "--broker", "127.0.0.1:1"], "127.0.0.1:1: cannot be reached"),
    ],
    ids=["unknown preset", "no output", "seed", "broker", "nobody there"],
)
def test_wrong_usage_is_one_line(
    flags: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["loadgen", "fleet", *flags]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_valid_and_called_as_their_files(name: str) -> None:
    assert load_scenario(name).name == name
    assert (PRESETS / f"{name}.yaml").read_text(encoding="utf-8").startswith("# ")


def test_presets_cover_every_kind_and_the_documents_every_preset_and_kind() -> None:
    used = {group.kind for name in preset_names() for group in load_scenario(name).inject}
    assert used == set(INJECTORS) == set(DELTAS)
    text = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
    assert [name for name in (*preset_names(), *INJECTORS) if f"`{name}`" not in text] == []


def test_the_annotated_scenario_has_every_key_and_the_defaults() -> None:
    path = ROOT / "docs" / "examples" / "scenario.yaml"
    read = load_scenario(str(path))
    inject = [{"kind": group.kind, "name": group.name} for group in read.inject]
    assert read == Scenario.model_validate(
        {"name": read.name, "inject": inject}, by_alias=True, by_name=False
    )
    schema = Scenario.model_json_schema(by_alias=True)
    keys = set().union(*(model.get("properties", {}) for model in (schema, *schema["$defs"].values())))
    assert keys - set(re.findall(r"\b([a-z_]+):", path.read_text(encoding="utf-8"))) == set()


def test_the_command_writes_a_data_set_that_backtest_and_score_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "data"
    assert run(["loadgen", "fleet", "--scenario", "tiny", "--seed", "4", "--out", str(out)]) == 0
    assert "tiny:" in capsys.readouterr().err
    expected, read = simulate(load_scenario("tiny"), 4).dataset, read_dataset(out)
    assert read.names == expected.names
    assert np.array_equal(read.samples, expected.samples)
    assert np.array_equal(read.totals, expected.totals)
    assert read.meta["seed"] == 4
    rows = read_truth(out / "truth.jsonl")
    assert [row.id for row in rows] == [row["id"] for row in expected.truth]
    assert sum(row.expected for row in rows) == 3


def test_the_command_writes_a_folder_for_each_of_several_services(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (PRESETS / "tiny.yaml").read_text(encoding="utf-8")
    (tmp_path / "two.yaml").write_text(f"{text}siblings: [search]\n")
    arguments = ["loadgen", "fleet", "--scenario", str(tmp_path / "two.yaml"), "--out", str(tmp_path / "o")]
    assert run(arguments) == 0
    assert "tiny, search:" in capsys.readouterr().err
    read = [read_dataset(tmp_path / "o" / service) for service in ("shop", "search")]
    assert [data.service for data in read] == ["shop", "search"]
    assert read[0].names != read[1].names


def small_enough_to_publish() -> Scenario:
    servers = ServersSpec(count=40, missing_windows=1)
    return load_scenario("tiny").model_copy(update={"servers": servers, "duration_s": 43_200.0})


def test_published_profiles_count_to_the_same_series() -> None:
    made = small_enough_to_publish()
    fleet = simulate(made, 2)
    data = fleet.dataset
    batches = list(messages(fleet, made, 2))
    assert len(batches) == len(data.totals)
    sent = [message for batch in batches for message in batch]
    profiles = [decode_profile(m.value) for m in sent if m.topic == "profiles"]
    counted = count_samples(
        profiles, [0] * len(profiles), window_s=data.window_s, stack_window_s=data.stack_window_s
    )
    found = np.zeros_like(data.samples)
    row_of = {key: row for row, key in enumerate(zip(data.kinds, data.names, strict=True))}
    series = [row_of[key] for key in zip(counted.kinds, counted.names, strict=True)]
    columns = ((counted.cells.windows - data.start) / data.window_s).astype(int)
    np.add.at(
        found,
        (np.array(series)[counted.series_index], columns[counted.series_cell]),
        counted.series_samples,
    )
    assert np.array_equal(found, data.samples)
    changes = [decode_change(m.value) for m in sent if m.topic == "changes"]
    assert changes == list(data.changes)
    points = Counter(decode_metric_points(m.value).metric for m in sent if m.topic == "metrics")
    assert points == {one.metric: len(one.values) for one in data.metrics}


def test_published_profiles_come_from_many_hosts_and_some_come_late() -> None:
    made = small_enough_to_publish()
    fleet = simulate(made, 2)
    hosts, late, all_of_them = set(), 0, 0
    for window, batch in enumerate(messages(fleet, made, 2)):
        for message in batch:
            if message.topic == "profiles":
                profile = decode_profile(message.value)
                hosts.add(profile.host)
                all_of_them += 1
                late += profile.end < fleet.dataset.start + (window + 1) * made.window_s
                assert message.key == f"shop/{profile.host}"
    assert len(hosts) == 40
    assert late / all_of_them == pytest.approx(0.1, abs=0.02)


def test_shapes_are_exact_means_over_windows() -> None:
    timeline = Timeline(1000.0, 10.0, 6)
    assert timeline.step(1025.0).tolist() == [0, 0, 0.5, 1, 1, 1]
    assert timeline.step(1010.0, 20.0) == pytest.approx([0, 0.25, 0.75, 1, 1, 1])
    assert timeline.step(900.0).tolist() == [1] * 6
    assert timeline.pulse(1031.0, 1034.0) == pytest.approx([0, 0, 0, 0.3, 0, 0])
    assert timeline.pulse(1000.0, 1060.0, rise_s=20.0, fall_s=20.0) == pytest.approx(
        [0.25, 0.75, 1, 1, 0.75, 0.25]
    )


@pytest.mark.parametrize(
    ("mean", "variance", "keep_negative"), [(0.4, 0.01, True), (0.6, 0.02, True), (0.0004, 0.00001, False)]
)
def test_the_moments_of_the_figures_are_those_of_drawn_samples(
    mean: float, variance: float, keep_negative: bool
) -> None:
    drawn = mean + np.random.default_rng(1).standard_normal(2_000_000) * np.sqrt(variance)
    kept = np.clip(drawn, 0, 1) if keep_negative else drawn[drawn > 0]
    found = moments(mean, variance, keep_negative=keep_negative)
    assert found == pytest.approx((kept.mean(), kept.var()), rel=0.005)


def test_figure_9_shows_with_a_thousandth_of_the_servers_what_figure_8_shows() -> None:
    process = averaged(50_000_000, 1, Streams(1).of("8"))
    subroutine = averaged(50_000, 1000, Streams(1).of("9"))
    for panel in (process, subroutine):
        before, after = panel.values[:500], panel.values[500:]
        assert (after.mean() - before.mean()) / before.std() > 1.5  # seen by eye
    few = averaged(500_000, 1, Streams(1).of("8"))
    assert abs(few.values[500:].mean() - few.values[:500].mean()) / few.values.std() < 0.6
    assert subroutine.mean[0] > 0.05  # footnote 3: dropping negative samples raises the mean


def test_figure_1_hides_its_regression() -> None:
    tiny = figure_1(Streams(1))[0]
    assert tiny.mean[-1] - tiny.mean[0] == pytest.approx(0.005)
    assert tiny.values.std() == pytest.approx(10, rel=0.1)


def test_without_matplotlib_the_figures_say_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else found(name, *rest)
    )
    with pytest.raises(ConfigError, match=r"matplotlib is not installed: pip install 'smidgen\[dev\]'"):
        draw_figures(tmp_path, 1)


def test_the_figures_are_small_png_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    written = draw_figures(tmp_path, 1)
    assert [path.name for path in written] == ["figure-1.png", "figure-8.png", "figure-9.png"]
    for path in written:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 150_000


def test_the_documents_figures_are_there() -> None:
    folder = ROOT / "docs" / "figures"
    sizes = {path.name: path.stat().st_size for path in folder.glob("figure-*.png")}
    assert set(sizes) == {"figure-1.png", "figure-8.png", "figure-9.png"}
    assert max(sizes.values()) < 150_000


def test_the_command_helps_without_loading_the_simulator() -> None:
    code = "import sys; from pipeline.cli import run; run(['loadgen', '--help'])"
    code += "; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False"
