"""Results of many commits: one series for each benchmark, in the order of commits."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from agents.experiments.benchmarks.entries import BRANCH, PACKAGE, is_dirty
from agents.experiments.benchmarks.foreign_formats import ForeignFormat, foreign_format
from agents.experiments.benchmarks.order import CommitOrder, commit_order
from agents.experiments.benchmarks.results import (
    COMMIT_ID,
    BenchmarkRun,
    FileResults,
    LeftOut,
    Measurement,
    Remark,
    ResultFile,
    commits_of,
    find_format,
    format_names,
    without_ids,
)
from agents.experiments.benchmarks.series import (
    BenchmarkSeries,
    SeriesIdentity,
    directed,
    identified,
    series_of,
    titled,
)
from agents.experiments.benchmarks.units import Better
from pipeline.files.listing import listed
from pipeline.model.errors import ConfigError, file_errors

HIDDEN_RESULTS = (".asv", ".benchmarks")
"""Folders that tools keep results in by default."""

_REMEDIES = {
    LeftOut.AMBIGUOUS: " (several benchmarks of one name: lines such as pkg: shop/store, or files of their "
    "own, distinguish them; --across pkg takes interleaved ones for repetitions)"
}
"""What would make measurements of entries that are left out."""

MOST_BYTES = 256 * 1024**2
"""Largest file of results."""


@dataclass(frozen=True, slots=True)
class BenchmarkHistory:
    """All benchmarks over the same commits."""

    order: CommitOrder
    series: tuple[BenchmarkSeries, ...]

    @property
    def commits(self) -> tuple[str, ...]:
        """Ids of the commits, oldest first, or their files where nothing says a commit."""
        return self.order.commits


@dataclass(slots=True)
class RunsReading:
    """Runs that were read, and the files that were passed over."""

    runs: list[BenchmarkRun] = field(default_factory=list)
    unknown: list[Path] = field(default_factory=list)  # files of folders that hold no results
    foreign: dict[ForeignFormat, list[Path]] = field(default_factory=dict)  # those that hold other reports

    @property
    def left_out(self) -> Counter[LeftOut]:
        """Number of entries without a measurement in all files, by reason."""
        total: Counter[LeftOut] = Counter()
        for run in self.runs:
            total.update(run.results.left_out)
        return total

    @property
    def remarks(self) -> Counter[Remark]:
        """Number of files by what is said of them."""
        return Counter(remark for run in self.runs for remark in run.results.remarks)

    @property
    def without_results(self) -> list[Path]:
        """Files without a result whose names are those of files with results, but for ids and numbers.

        So files that a tool writes beside its results do not count, and results that were cut off do.
        """
        measured = {run.path for run in self.runs if run.results.measurements}
        shapes = {_shape(path) for path in measured}
        others = {*self.unknown, *(run.path for run in self.runs)} - measured
        others |= {path for paths in self.foreign.values() for path in paths}
        return sorted(path for path in others if _shape(path) in shapes)


def read_results(
    paths: Sequence[Path], advance: Callable[[], object] = lambda: None, *, across: Collection[str] = ()
) -> RunsReading:
    """Read files, and all files under folders that hold results.

    Args:
        paths: Of files and folders.
        advance: Called before each file.
        across: Labels in which the results of one series may differ; the package among them says that
            interleaved results of one name are repetitions.

    Raises:
        ConfigError: a file that was named cannot be read or is of no known format, most files that are named
            like results hold none, or nothing is left.
    """
    reading = RunsReading()
    for path in paths:
        for file in _files(path):
            advance()
            content = _content(file) if file == path or file.is_file() else None  # such as a link to nowhere
            runs = _read(content, is_joined=PACKAGE in across) if content else []
            foreign = foreign_format(content) if content and not runs else None
            if runs:
                reading.runs += runs
            elif path == file:
                holds = f"holds {foreign.name}; {foreign.remedy}" if foreign else _no_results(content)
                raise ConfigError(f"{path}: {holds}")
            elif foreign:
                reading.foreign.setdefault(foreign, []).append(file)
            else:
                reading.unknown.append(file)
    if not any(run.results.measurements for run in reading.runs):
        raise ConfigError(f"{', '.join(map(str, paths[:3]))}: {_nothing_left(reading)}")
    _check_share(reading)
    reading.runs = _with_commits(reading.runs)
    return reading


def arrange(
    runs: Sequence[BenchmarkRun],
    order: Sequence[str] = (),
    *,
    in_order: bool = False,
    across: Collection[str] = (),
    directions: Mapping[str, Better] = MappingProxyType({}),
) -> BenchmarkHistory:
    """Put runs in the order of commits, and the repetitions of one commit and one identity together.

    Results belong to one series if name, scale of the unit, statistic and all labels are the same. Results of
    changed files are passed over where a commit has others.

    Args:
        runs: In the order in which files were named.
        order: Ids of commits, oldest first, such as git's. Runs of commits that ``order`` lacks are left out.
        in_order: The runs are in the order of commits.
        across: Labels in which the results of one series may differ.
        directions: Directions by unit, name of a benchmark, or metric after the colon of a name.

    Raises:
        ConfigError: nothing gives the order of the commits, or no result has a label of ``across`` or a name
            of ``directions``, or the name of a file may mean several commits.
    """
    runs = [run for run in runs if run.results.measurements]
    if order:
        position = {sha: number for number, sha in enumerate(order)}
        # A branch that was merged may have measured commits of the order.
        across = {*across, BRANCH}
        runs = [replace(run, commit=sha) for run in runs if (sha := _resolved(run, order, position))]
    else:
        for run in runs:
            _check_name(run, run.candidates)
    ordered = commit_order(runs, order, in_order=in_order)
    column = {commit: number for number, commit in enumerate(ordered.commits)}
    measured: dict[SeriesIdentity, list[tuple[int, Measurement]]] = {}
    changed: list[tuple[SeriesIdentity, int, Measurement]] = []
    for run, measurement, identity in identified(runs, across):
        if Remark.DIRTY in run.results.remarks:
            changed.append((identity, column[run.commit], measurement))
        else:
            measured.setdefault(identity, []).append((column[run.commit], measurement))
    committed = {(identity, commit) for identity, entries in measured.items() for commit, _ in entries}
    for identity, commit, measurement in changed:
        if (identity, commit) not in committed:
            measured.setdefault(identity, []).append((commit, measurement))
    series = [series_of(identity, entries, len(column)) for identity, entries in measured.items()]
    return BenchmarkHistory(ordered, tuple(titled([*directed(series, directions)])))


def _check_name(run: BenchmarkRun, candidates: Sequence[str]) -> None:
    """Raise a ConfigError if there are several ids in the name of a file that may be its commit."""
    if candidates[1:]:
        raise ConfigError(
            f"{run.path}: its name may mean the commit {' or '.join(candidates[:3])}: leave one of them in "
            "it, or give --repo if only one of them is of its branch"
        )


def _files(path: Path) -> Iterable[Path]:
    """Return a file, or what is under a folder and under folders that links lead to, each folder once.

    Raises:
        ConfigError: a folder cannot be listed.
    """
    if not path.is_dir():
        return [path]
    paths: list[Path] = []
    roots, listed_folders = [path], set[str]()
    for root in roots:  # grows by links
        for folder, folders, names in os.walk(root, onerror=_refuse_folder):
            real = os.path.realpath(folder)
            if real in listed_folders:
                folders.clear()
                continue
            listed_folders.add(real)
            folders[:] = [name for name in folders if not name.startswith(".") or name in HIDDEN_RESULTS]
            roots += [link for name in folders if _leads_elsewhere(link := Path(folder) / name)]
            paths += [Path(folder) / name for name in names]
    return sorted(paths)


def _refuse_folder(error: OSError) -> None:
    raise ConfigError(f"{error.filename}: {error.strerror}")


def _leads_elsewhere(link: Path) -> bool:
    """True for a link to a folder that does not hold the link itself."""
    return link.is_symlink() and not link.parent.resolve().is_relative_to(link.resolve())


def _check_share(reading: RunsReading) -> None:
    """Raise a ConfigError if more than half of the files that are named like results hold none."""
    without = reading.without_results
    total = len({run.path for run in reading.runs if run.results.measurements}) + len(without)
    if 2 * len(without) > total:
        raise ConfigError(
            f"{len(without):,} of {total:,} files that are named like results hold none "
            f"({listed([path.name for path in without])}): the others are no history, unless given by name"
        )


def _shape(path: Path) -> str:
    """Return a file's path without ids of commits and numbers."""
    return re.sub(r"\d+", "0", without_ids(str(path)))


def _nothing_left(reading: RunsReading) -> str:
    """Return why files have no results that can be compared, and what would give some."""
    reasons = [f"{format_.name}: {format_.remedy}" for format_ in reading.foreign]
    reasons += [
        f"left out: {count:,} {reason}{_REMEDIES.get(reason, '')}"
        for reason, count in reading.left_out.items()
    ]
    return f"no results ({'; '.join(reasons)})" if reasons else _no_results(None).removeprefix("holds ")


def _no_results(content: ResultFile | None) -> str:
    holds = "holds"
    if content and content.is_prose:
        holds = "is a document, and holds"
    elif content and content.document is None and content.text.lstrip()[:1] in ("{", "["):
        holds = "is not one JSON document (cut off, or several in a file), and holds"
    return f"{holds} no results of {', '.join(format_names())}"


def _content(path: Path) -> ResultFile | None:
    with file_errors(path), path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{path}: more than {MOST_BYTES // 1024**2} MiB")
    try:
        return ResultFile.of(path, data)
    except ConfigError:
        return None


def _read(content: ResultFile, *, is_joined: bool) -> list[BenchmarkRun]:
    format_ = find_format(content)
    if not format_:
        return []
    try:
        results = [_settled(format_.read(run), is_joined=is_joined) for run in format_.runs(content)]
    except ConfigError as error:
        raise ConfigError(f"{content.path}: {error}") from None
    unnamed = [f"{content.path}:{number}" if results[1:] else "" for number in range(len(results))]
    return [
        BenchmarkRun(content.path, format_, item, item.commit or name)
        for item, name in zip(results, unnamed, strict=True)
    ]


def _settled(results: FileResults, *, is_joined: bool) -> FileResults:
    """Return results with the interleaved ones among them, or among those that are left out."""
    interleaved = results.interleaved
    if not interleaved:
        return results
    if is_joined:
        remarks = results.remarks | {Remark.REPETITIONS}
        return replace(results, measurements=[*results.measurements, *interleaved], remarks=remarks)
    left_out = Counter(results.left_out)
    left_out[LeftOut.AMBIGUOUS] += sum(len(measurement.values) for measurement in interleaved)
    return replace(results, left_out=left_out)


def _with_commits(runs: Sequence[BenchmarkRun]) -> list[BenchmarkRun]:
    """Return runs with the commits that their names say, where their files say none.

    A folder that all files share, such as a container's ``/builds/3fabc12d``, names no commit of theirs. Of
    several ids in a name, as of ``revert-0f3c2a9-4d5e6f7.txt``, those of all files and those that are another
    file's only id are not the commit; what is not decided so becomes ``candidates``.
    """
    shared = Path(os.path.commonpath([run.path.parent.absolute() for run in runs])) if runs[1:] else None
    paths = [run.path.absolute().relative_to(shared) if shared else run.path for run in runs]
    ids = [next(filter(None, map(_distinct_ids, _names(path))), []) for path in paths]
    single = {
        run.commit or names[0] for run, names in zip(runs, ids, strict=True) if run.commit or len(names) == 1
    }
    several = {frozenset(names) for names in ids if names[1:]}
    common = frozenset.intersection(*several) if len(several) > 1 else frozenset[str]()
    named = []
    for run, path, names in zip(runs, paths, ids, strict=True):
        results = run.results
        if any(is_dirty(name) for name in _names(path)):
            results = replace(results, remarks=results.remarks | {Remark.DIRTY})
        own = [name for name in names if not names[1:] or not (name in common or _is_among(name, single))]
        commit = run.commit or (own[0] if len(own) == 1 else str(run.path))
        candidates = () if run.commit or len(names) < 2 or len(own) == 1 else tuple(own or names)
        named.append(replace(run, results=results, commit=commit, candidates=candidates))
    whole = _whole_ids({run.commit for run in named})
    return [replace(run, commit=whole[run.commit]) for run in named]


def _distinct_ids(name: str) -> list[str]:
    """Return the ids in a name; of a whole id and its abbreviation the whole one."""
    ids = sorted(dict.fromkeys(commits_of(name)), key=len, reverse=True)
    return [sha for at, sha in enumerate(ids) if not any(longer.startswith(sha) for longer in ids[:at])]


def _is_among(sha: str, ids: Collection[str]) -> bool:
    """Return whether an id, or what it abbreviates or is abbreviated by, is among ids."""
    return any(sha.startswith(other) or other.startswith(sha) for other in ids)


def _whole_ids(commits: Collection[str]) -> dict[str, str]:
    """Return commits by their names: that which an abbreviated id begins, if all such are one commit."""
    whole: dict[str, str] = {}
    for commit in sorted(commits, reverse=True):  # longer ids first
        longer = (
            {whole[name] for name in whole if name.startswith(commit)} if COMMIT_ID.fullmatch(commit) else ()
        )
        whole[commit] = next(iter(longer)) if len(longer) == 1 else commit
    return whole


def _names(path: Path) -> tuple[str, ...]:
    return path.stem, *reversed(path.parent.parts)


def _resolved(run: BenchmarkRun, order: Sequence[str], position: dict[str, int]) -> str:
    """Return the commit of a run, empty if the order lacks it or has several of that abbreviation.

    One abbreviated id in a hundred is digits alone: if ``order`` has such a commit, they are no date.

    Raises:
        ConfigError: the order has several of the commits that the name of the file may mean.
    """
    digits = (
        sha
        for name in _names(run.path)
        for sha in commits_of(name, digits=True)
        if len(sha) < 40 and sha.isdigit()
    )
    for commit in (run.commit, *digits):
        if commit in position:
            return commit
        whole = [sha for sha in order if commit and sha.startswith(commit)]
        if len(whole) == 1:
            return whole[0]
    of_branch = [sha for sha in order if any(sha.startswith(commit) for commit in run.candidates)]
    _check_name(run, of_branch)
    return next(iter(of_branch), "")
