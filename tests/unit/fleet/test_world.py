"""A world that moves: real call trees, languages, refactorings of any size, gaps and cycles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.fleet.scenario import Language, Scenario, load_scenario
from loadgen.fleet.simulate import simulate
from loadgen.fleet.spelling import Spelling
from pipeline.backtest.dataset import Dataset
from pipeline.counting.names import Naming
from pipeline.model.errors import ConfigError

SMALL: dict[str, Any] = {
    "name": "world",
    "duration": "4d",
    "samples_per_minute": 60,
    "graph": {"subroutines": 80, "endpoints": 4},
    "servers": {"count": 2_000, "missing": 0},
    "changes": {"count": 20},
}


def drawn(seed: int = 3, **keys: Any) -> Dataset:
    return simulate(Scenario.model_validate({**SMALL, **keys}, by_alias=True), seed).dataset


def refactored(chosen: str, share: float = 1.0) -> Dataset:
    group = {"kind": "refactoring", "types": [chosen], "delta": [share, share], "between": [0.5, 0.55]}
    return drawn(inject=[group])


def days(data: Dataset, day: int) -> slice:
    return slice(day * 144, (day + 1) * 144)


def shown(data: Dataset, day: int) -> set[str]:
    """Return the subroutines that have samples on a day."""
    rows = data.samples[:, days(data, day)].sum(axis=1) > 0
    series = zip(data.kinds, data.names, rows, strict=True)
    return {name for kind, name, seen in series if seen and kind == "subroutine"}


READ = "shop.cart.rows.CartReader.read_rows"


@pytest.mark.parametrize(
    ("name", "language", "frame", "declared"),
    [
        (READ, "python", READ, READ),
        (READ, "java", "shop/cart/rows/CartReader.", "shop/cart/rows/CartReader.readRows"),
        (READ, "go", "shop/cart/rows.(*CartReader).ReadRows", "shop/cart/rows.(*CartReader).ReadRows"),
        (READ, "cpp", "shop::cart::rows::CartReader", "shop::cart::rows::CartReader::read_rows"),
        (READ, "rust", "shop::cart::rows::CartReader::", "shop::cart::rows::CartReader::read_rows"),
        (READ, "javascript", "CartReader.readRows", "CartReader.readRows"),
        (READ, "php", "Shop\\Cart\\Rows\\CartReader::readRows", "Shop\\Cart\\Rows\\CartReader::readRows"),
        ("server.main.serve", "go", "server/main.Serve", "server/main.Serve"),
    ],
)
def test_names_are_spelt_as_the_language_does(
    name: str, language: Language, frame: str, declared: str
) -> None:
    spelling = Spelling(language)
    assert spelling.frame(name).startswith(frame)
    assert spelling.declared(name) == declared
    assert spelling.frame("endpoint=/cart/show") == "endpoint=/cart/show"


@pytest.mark.parametrize("language", ["python", "go", "java", "cpp", "rust", "javascript", "php"])
def test_a_language_changes_names_and_nothing_else(language: str) -> None:
    python, other = drawn(), drawn(graph={**SMALL["graph"], "language": language})
    assert [len(stack) for stack in other.stacks] == [len(stack) for stack in python.stacks]
    np.testing.assert_array_equal(other.stack_samples, python.stack_samples)
    assert [change.id for change in other.changes] == [change.id for change in python.changes]


@pytest.mark.parametrize("chosen", ["modules", "package", "wrapper", "middleware", "runtime"])
def test_a_refactoring_leaves_the_work_as_it_was(chosen: str) -> None:
    data, plain = refactored(chosen), drawn()
    (row,) = data.truth
    assert (row["kind"], row["subkind"]) == ("cost_shift", chosen)
    before, after = shown(data, 0), shown(data, 3)
    assert after - before, "names that were not there before"
    # Renamed stacks draw from streams of their own, so counts agree as draws of one mean do.
    for day in (0, 3):
        total, other = data.totals[days(data, day)].sum(), plain.totals[days(plain, day)].sum()
        assert total == pytest.approx(other, rel=0.01)


def test_a_package_renames_every_subroutine_and_a_wrapper_none() -> None:
    package, wrapper = refactored("package"), refactored("wrapper")
    assert shown(package, 3) == {f"monorepo.{name}" for name in shown(package, 0)}
    assert shown(wrapper, 3) - shown(wrapper, 0) == {"tracing.Tracer.call"}
    assert shown(wrapper, 0) <= shown(wrapper, 3)


def test_a_part_is_refactored_where_a_part_is_asked_for() -> None:
    data = refactored("middleware", share=0.5)
    (row,) = data.truth
    assert 0.05 < row["delta"] < 0.95


def test_restless_names_last_for_a_day() -> None:
    data = refactored("restless", share=0.3)
    lambdas = [{name for name in shown(data, day) if "$$Lambda$" in name} for day in range(4)]
    assert all(len(names) == len(lambdas[0]) >= 10 for names in lambdas)
    assert all(lambdas[a].isdisjoint(lambdas[b]) for a in range(4) for b in range(a))


def test_regressions_are_known_by_the_names_they_have_then() -> None:
    step = {"kind": "step", "between": [0.7, 0.75], "delta": [0.01, 0.02], "config": 0, "no_culprit": 0}
    package = {"kind": "refactoring", "types": ["package"], "delta": [1, 1], "between": [0.5, 0.55]}
    data = drawn(inject=[step, package])
    row = next(row for row in data.truth if row["kind"] == "regression")
    name = row["subroutines"][0]
    assert f"monorepo.{name}" in row["subroutines"]
    assert row["standard_error"] > 0
    change = next(change for change in data.changes if change.id == row["change"])
    assert change.subroutines == (f"monorepo.{name}",)


def test_regressions_are_known_by_each_name_that_a_runtime_makes_up() -> None:
    step = {"kind": "step", "count": 4, "between": [0.6, 0.9], "config": 0, "no_culprit": 0}
    restless = {"kind": "refactoring", "types": ["restless"], "delta": [0.6, 0.6], "between": [0, 0]}
    data = drawn(inject=[restless, step])
    rows = [row for row in data.truth if row["kind"] == "regression"]
    made_up = {name for row in rows for name in row["subroutines"] if "$$Lambda$" in name}
    symbols = {Naming().symbol(name) for name in made_up}
    assert symbols
    assert len(made_up) >= 4 * len(symbols)  # one a day
    causes = [change for change in data.changes if change.id in {row["change"] for row in rows}]
    assert causes
    assert not any("$$Lambda$" in name for change in causes for name in change.subroutines)


def test_endpoints_move_traffic_even_if_stacks_do_not_show_them() -> None:
    load = {"mix_daily": 1.0}
    plain, hidden = drawn(load=load), drawn(load=load, graph={**SMALL["graph"], "annotated": False})
    assert "endpoint" in plain.kinds
    assert "endpoint" not in hidden.kinds
    np.testing.assert_array_equal(plain.totals, hidden.totals)


def test_gaps_hours_and_sparse_windows_have_no_data() -> None:
    data = drawn(load={"hours": [8, 18], "every": 2, "periods": [{"at": 0.5, "length": "1d"}]})
    start = data.start + np.arange(len(data.totals)) * data.window_s
    hour = (start + data.window_s / 2) % 86_400 / 3600
    running = (hour >= 8) & (hour < 18) & (np.arange(len(start)) % 2 == 0)
    running[days(data, 2)] = False
    np.testing.assert_array_equal(data.totals > 0, running)


def test_what_is_deployed_while_a_service_is_closed_shows_in_the_morning() -> None:
    step = {"kind": "step", "count": 30, "delta": [0.002, 0.01], "between": [0.1, 0.9], "no_culprit": 0}
    closed, open_ = (drawn(load=load, inject=[step]) for load in ({"hours": [8, 18]}, {}))
    deployed = {row["id"]: row["start"] for row in open_.truth}
    times = {change.id: change.time for change in closed.changes}
    moved = 0
    for row in closed.truth:
        window = int((row["start"] - closed.start) // closed.window_s)
        assert closed.totals[window] > 0
        before = deployed[row["id"]]
        assert times[row["change"]] <= before + 600
        if not 8 <= before % 86_400 / 3600 < 18:
            assert row["start"] % 86_400 == 8 * 3600
            assert row["standard_error"] is not None
            moved += 1
        else:
            assert row["start"] == before
    assert moved > 5


def test_a_sale_has_more_load_and_a_holiday_another_mix() -> None:
    period = [{"at": 0.5, "length": "1d", "level": 3, "mix": 0.5}]
    data, plain = drawn(load={"periods": period}), drawn()
    gain = data.totals[days(data, 2)].sum() / plain.totals[days(plain, 2)].sum()
    assert 2 < gain < 5
    assert data.totals[days(data, 1)].sum() == pytest.approx(plain.totals[days(plain, 1)].sum(), rel=0.001)


def test_causes_elsewhere_modify_a_caller() -> None:
    step = {"kind": "step", "count": 5, "delta": [0.01, 0.02], "config": 0, "no_culprit": 0}
    data = drawn(changes={"count": 0, "elsewhere": 1.0}, inject=[step])
    modified = {change.id: change.subroutines for change in data.changes}
    for row in data.truth:
        assert row["subroutines"][0] not in modified[row["change"]]
        assert any(
            stack[index - 1] == caller
            for caller in modified[row["change"]]
            for stack in (tuple(label for label in stack if "=" not in label) for stack in data.stacks)
            for index in range(1, len(stack))
            if stack[index] == row["subroutines"][0]
        )


def test_a_real_profile_is_the_call_tree(tmp_path: Path) -> None:
    path = tmp_path / "real.txt"
    lines = [f"main;serve;handler_{i % 5};com.acme.Class{i}.work;com.acme.Db.read {i + 1}" for i in range(20)]
    deep = ";".join(f"deep{i}" for i in range(60))
    path.write_text("\n".join([*lines, "main;idle 3", f"main;{deep} 2"]))
    small = drawn(graph={"profile": str(path), "subroutines": 20, "endpoints": 3, "annotated": False})
    large = drawn(graph={"profile": str(path), "subroutines": 300, "endpoints": 3, "annotated": False})
    assert len(shown(small, 0)) <= 20 < 150 < len(shown(large, 0)) <= 300
    assert max(len(stack) for stack in large.stacks) <= 40
    assert {stack[0] for stack in large.stacks} == {"main"}
    shares = {name: data_share(small, name) for name in ("serve", "com.acme.Db.read")}
    assert all(share > 0.5 for share in shares.values())


def data_share(data: Dataset, name: str) -> float:
    row = data.names.index(name)
    return float(data.samples[row].sum() / data.totals.sum())


def test_a_profile_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"graph: profile: .*nothing\.txt"):
        drawn(graph={"profile": str(tmp_path / "nothing.txt"), "subroutines": 50, "endpoints": 3})


def test_a_clock_change_moves_the_day_by_an_hour() -> None:
    quiet: dict[str, Any] = {"noise": {"drift": 0, "mix_drift": 0}}
    load = {"daily": 0.5, "weekly": 0, "mix_daily": 0, "mix_weekly": 0}
    data, plain = drawn(load={**load, "clock_change": 0.5}, **quiet), drawn(load=load, **quiet)
    hour = round(3600 / data.window_s)
    np.testing.assert_allclose(data.totals[: 2 * 144], plain.totals[: 2 * 144], rtol=0.01)
    moved, before = data.totals[2 * 144 : 3 * 144], plain.totals[2 * 144 + hour : 3 * 144 + hour]
    np.testing.assert_allclose(moved, before, rtol=0.05)
    assert np.abs(moved / plain.totals[2 * 144 : 3 * 144] - 1).max() > 0.1


@pytest.mark.parametrize(("chosen", "runs"), [("daily", 4), ("weekly", 1)])
def test_jobs_have_samples_only_while_they_run(chosen: str, runs: int) -> None:
    length = ["1h", "1h"]
    job = {
        "kind": "cron",
        "types": [chosen],
        "between": [0.1, 0.1],
        "duration": length,
        "delta": [0.05, 0.05],
    }
    data = drawn(inject=[job])
    (row,) = data.truth
    assert (row["kind"], row["subkind"], row["change"]) == ("seasonal", f"{chosen}_job", None)
    since = data.start + np.arange(len(data.totals)) * data.window_s - row["start"]
    begun = since > -data.window_s
    late = since % row["period_s"]
    running = begun & ((late < row["length_s"]) | (late > row["period_s"] - data.window_s))
    inside = begun & (late < row["length_s"] - data.window_s)
    own = [name for name in row["subroutines"] if name.startswith("jobs.")]
    assert len(own) >= 6
    for name in own:
        samples = data.samples[data.names.index(name)]
        assert samples[~running].sum() == 0 < samples[inside].sum()
    assert np.count_nonzero(np.diff(running.astype(int)) == 1) == runs
    scheduler = data.samples[data.names.index("jobs.main.run")]
    assert scheduler[inside].sum() / data.totals[inside].sum() == pytest.approx(0.05, rel=0.02)


def test_a_slower_library_is_one_change_in_every_service() -> None:
    library = {"kind": "library", "count": 2, "between": [0.3, 0.5], "delta": [0.5, 0.5]}
    keys = {**SMALL, "siblings": ["search", "checkout"], "inject": [library], "changes": {"count": 0}}
    scenario = Scenario.model_validate(keys, by_alias=True)
    services = [simulate(one, 3).dataset for one in scenario.of_each_service()]
    assert [data.service for data in services] == ["shop", "search", "checkout"]
    assert len({row["id"] for data in services for row in data.truth}) == 6
    for kind, named in (("library_modified", 1), ("library_upgraded", 0)):
        rows = [next(row for row in data.truth if row["subkind"] == kind) for data in services]
        assert len({row["change"] for row in rows}) == len({row["library"] for row in rows}) == 1
        assert len({tuple(row["parts"]) for row in rows}) == 1
        assert len({row["start"] for row in rows}) > 1, "services deploy it with releases of their own"
        for data, row in zip(services, rows, strict=True):
            change = next(change for change in data.changes if change.id == row["change"])
            assert (change.service, change.time) == (data.service, row["start"])
            assert len(change.subroutines) == named
            assert set(change.subroutines) <= set(row["parts"])
            assert set(row["parts"]) <= shown(data, 0)
            assert row["subroutines"][0] in row["parts"]


def test_services_with_the_same_libraries_have_code_of_their_own() -> None:
    scenario = Scenario.model_validate({**SMALL, "siblings": ["search"]}, by_alias=True)
    one, other = (shown(simulate(each, 3).dataset, 0) for each in scenario.of_each_service())
    libraries = {name for name in one if name.startswith("lib.")}
    assert libraries == {name for name in other if name.startswith("lib.")} != set()
    assert not {name for name in one & other if name.startswith("shop.")}


def test_services_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="each service should be named once"):
        Scenario.model_validate({**SMALL, "siblings": ["shop"]}, by_alias=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["mass-rename", "restless", "templates", "gaps", "clock-change", "sale-days", "weekly-cron"],
)
def test_presets_have_their_eight_steps(name: str) -> None:
    truth = simulate(load_scenario(name), 5).dataset.truth
    assert sum(row["kind"] == "regression" for row in truth) == 8
