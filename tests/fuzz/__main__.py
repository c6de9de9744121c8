"""Coverage-guided fuzzing: ``python -m tests.fuzz [--seconds 60] [TARGET...]``, what ``make fuzz`` runs.

All chosen targets run in one process: the first byte of an input chooses the target, so that a minute is
enough for a look at each. What was found interesting is kept in build/fuzz, and the next run builds upon it.
An input that broke a target is written to build/fuzz/found; it belongs into tests/fuzz/corpus/TARGET.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).with_name("corpus")
WORK = ROOT / "build" / "fuzz"
INSTRUMENTED = ("pipeline", "agents", "loadgen")
LONGEST_S = 20  # one input: many times what the largest takes on a slow machine
MOST_MIB = 4096


def main() -> int:
    """Start libFuzzer in a process of its own, and say which target broke."""
    options = _options()
    if importlib.util.find_spec("atheris") is None:
        print("fuzz: left out, since atheris is not installed here (it has wheels for Python 3.11 to 3.13)")
        return 0
    if options.child:
        _fuzz(options.targets, options.seconds, options.seed)
        return 0
    from tests.fuzz.targets import TARGETS

    names = options.targets or sorted(TARGETS)
    if unknown := [name for name in names if name not in TARGETS]:
        print(f"fuzz: no target {unknown[0]!r}; there are {', '.join(sorted(TARGETS))}", file=sys.stderr)
        return 2
    found = WORK / "found"
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir(parents=True)
    limits = ["--seconds", str(options.seconds), "--seed", str(options.seed)]
    child = [sys.executable, "-m", "tests.fuzz", "--child", *limits, *names]
    ended = subprocess.run(child, cwd=ROOT, check=False)
    broken = sorted(found.iterdir())
    for path in broken:
        data = path.read_bytes()
        name = names[data[0] % len(names)] if data else names[0]
        kept = found / f"{name}-{path.name}"
        kept.write_bytes(data[1:])
        path.unlink()
        print(f"fuzz: {name} broke on {kept.relative_to(ROOT)}; the failure stands above", file=sys.stderr)
    if ended.returncode and not broken:
        print(f"fuzz: the fuzzer ended with code {ended.returncode}", file=sys.stderr)
    return 1 if ended.returncode or broken else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; 0 is another one every time")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _fuzz(names: list[str], seconds: int, seed: int) -> None:
    """Fuzz until the time is up or a target breaks; libFuzzer ends the process itself."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=list(INSTRUMENTED)):
        from tests.fuzz.mutate import MAX_BYTES, mutate_bytes, mutate_json
        from tests.fuzz.targets import TARGETS

    targets = [TARGETS[name] for name in names]

    def run(data: bytes) -> None:
        if not data:
            return
        target = targets[data[0] % len(targets)]
        try:
            target.run(data[1:])
        except target.errors:
            return

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        """Half of the time by structure, else as libFuzzer does, which follows what comparisons ask for."""
        rng = Random(seed)
        if not data or rng.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        target, body = targets[data[0] % len(targets)], data[1:]
        tokens = target.tokens
        changed = mutate_json(rng, body) if tokens is None else mutate_bytes(rng, body, tokens)
        return (data[:1] + changed)[:max_size]

    seeds, interesting = WORK / "seeds", WORK / "-".join(["corpus", *names])[:100]
    shutil.rmtree(seeds, ignore_errors=True)
    for folder in (seeds, interesting):
        folder.mkdir(parents=True, exist_ok=True)
    for number, (name, target) in enumerate(zip(names, targets, strict=True)):
        kept = [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]
        for position, body in enumerate([*target.seeds(), *kept]):
            (seeds / f"{name}-{position}").write_bytes(bytes([number]) + body)
    limits = [f"-max_total_time={seconds}", f"-timeout={LONGEST_S}", f"-rss_limit_mb={MOST_MIB}"]
    limits += [f"-max_len={MAX_BYTES}", f"-artifact_prefix={WORK / 'found'}/", "-print_final_stats=1"]
    limits += [f"-seed={seed}"] if seed else []
    arguments = [sys.argv[0], *limits, str(interesting), str(seeds)]
    atheris.Setup(arguments, run, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
