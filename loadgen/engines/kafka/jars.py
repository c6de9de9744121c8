"""Apache Kafka's jars: fetched once with Maven into the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.model.errors import ConfigError
from pipeline.processes import run_bounded

POM = Path(__file__).with_name("pom.xml")

_FETCH_TIMEOUT_S = 900.0
_MOST_BYTES = 16 * 1024**2  # characters of Maven's output


@dataclass(frozen=True, slots=True)
class Jars:
    """A folder with all jars that Kafka needs, and the Java program that runs them."""

    java: str
    folder: Path

    @property
    def classpath(self) -> str:
        """Every jar in a constant order, since the archive of classes depends on it."""
        return os.pathsep.join(os.fspath(jar) for jar in sorted(self.folder.glob("*.jar")))

    @property
    def archive(self) -> Path:
        """Path of the archive of loaded classes, which makes a start faster; it may be missing."""
        return self.folder / "classes.jsa"

    @property
    def checkpoint(self) -> Path:
        """Path of the beginning of a new metadata log, as Kafka's own tool wrote it; it may be missing."""
        return self.folder / "bootstrap.checkpoint"


def kafka_version() -> str:
    """Return the version of Apache Kafka that ``pom.xml`` names."""
    match = re.search(r"<kafka\.version>([^<]+)</kafka\.version>", POM.read_text())
    assert match is not None, "pom.xml names no version"
    return match[1]


def missing_programs() -> list[str]:
    """Return the missing programs among ``java`` and ``mvn``; only the first start needs ``mvn``."""
    return [name for name in ("java", "mvn") if shutil.which(name) is None]


def default_cache() -> Path:
    """Return the folder that keeps the jars from one run to the next."""
    return Path.home() / ".cache" / "smidgen"


def kafka_jars(cache: Path | None = None) -> Jars:
    """Return the jars, fetched first if this pom was never fetched; other processes wait meanwhile.

    Raises:
        ConfigError: ``java`` is missing, or the jars are not there yet and ``mvn`` is missing or could not
            fetch them.
    """
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:8]
    folder = (cache or default_cache()) / f"kafka-{kafka_version()}-{digest}"
    java = shutil.which("java")
    if java is None or not (folder.is_dir() or shutil.which("mvn")):
        missing = [name for name in missing_programs() if name == "java" or not folder.is_dir()]
        raise ConfigError(f"Apache Kafka needs {' and '.join(missing)}, which cannot be found")
    with locked(folder):
        if not folder.is_dir():
            _fetch(folder)
    return Jars(java, folder)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from preparing the same folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path) -> None:
    # Under another name until complete: an interrupted fetch leaves no incomplete folder.
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    pom = shutil.copy(POM, partial)  # Maven may write next to it
    command = ["mvn", "--quiet", "--batch-mode", "--file", os.fspath(pom)]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
    output = run_bounded(command, max_bytes=_MOST_BYTES, timeout_s=_FETCH_TIMEOUT_S)
    if output.cut:
        raise ConfigError(f"Maven did not fetch Apache Kafka within {_FETCH_TIMEOUT_S:g} s")
    if output.code != 0:
        reason = _first_error(output.data.decode(errors="replace") + output.errors)
        raise ConfigError(f"Maven could not fetch Apache Kafka: {reason}")
    partial.rename(folder)


def _first_error(output: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("[ERROR]")), lines[-1] if lines else "no reason")
