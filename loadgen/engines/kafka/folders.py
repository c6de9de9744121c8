"""Folders of Apache Kafka's brokers, prepared for the first start."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from loadgen.engines.kafka.jars import Jars
from pipeline.model.errors import BrokerUnavailable
from pipeline.processes import Child

_TIMEOUT_S = 60.0


def format_folders(folders: Sequence[Path], jars: Jars, java: Sequence[str], users: Sequence[str]) -> None:
    """Make ``data`` in each broker's folder, where ``server.properties`` lies; its index is the node's id.

    Kafka's own tool does it, in a separate Java process for each folder. Without users, clusters differ only
    in their ids: then the files that the tool wrote once are copied.

    Args:
        folders: one for each broker.
        jars: Kafka's jars; the files to copy lie beside them.
        java: the command that starts Java, up to the name of the class.
        users: options of the tool that create users.

    Raises:
        BrokerUnavailable: the tool failed; the text says why.
    """
    cluster = _new_id()
    if users or not jars.checkpoint.exists():
        _run_tool(cluster, folders, java, users)
        if not users:
            _keep(folders[0] / "data" / jars.checkpoint.name, jars.checkpoint)
        return
    for index, folder in enumerate(folders):
        data = folder / "data"
        data.mkdir()
        shutil.copy(jars.checkpoint, data)
        ids = {"version": 1, "cluster.id": cluster, "node.id": index, "directory.id": _new_id()}
        (data / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in ids.items()))


def reason_in(log: str) -> str:
    """Return the line of Kafka's output that states the error, or the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    reasons = [line for line in lines if "Exception" in line and not line.startswith("at ")]
    reasons += [line for line in lines if " ERROR " in line or " FATAL " in line]
    return (reasons or lines or [""])[0 if reasons else -1]


def _run_tool(cluster: str, folders: Sequence[Path], java: Sequence[str], users: Sequence[str]) -> None:
    tools = []
    for folder in folders:
        config = os.fspath(folder / "server.properties")
        tool = ["kafka.tools.StorageTool", "format", "--cluster-id", cluster, "--config", config, *users]
        tools.append(Child([*java, *tool]))
    try:
        for child in tools:
            child.drain()
        failed = [child for child in tools if child.wait(_TIMEOUT_S) != 0]
        if failed:
            reason = reason_in(failed[0].output()) or "it said nothing"
            raise BrokerUnavailable(f"Kafka's storage cannot be formatted: {reason}")
    finally:
        for child in tools:
            child.stop()


def _keep(written: Path, target: Path) -> None:
    # Under another name until complete: other processes may look for it at the same time.
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copy(written, partial)
    partial.replace(target)


def _new_id() -> str:
    """Return a new id, of a cluster or a folder: 16 bytes in Base64.

    The first byte is 0, since an id that begins with a hyphen may be parsed as an option.
    """
    return base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")
