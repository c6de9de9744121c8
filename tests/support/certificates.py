"""Certificates for a test, made with the openssl program: an authority and the certificates it issues."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
_LOOPBACK = "IP:127.0.0.1,DNS:localhost"


@dataclass(frozen=True)
class Certificate:
    """Files in PEM: a certificate, its key, and both in one file, as Kafka needs them."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """Authority that issues certificates; its own is ``certificate``."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = folder / f"{name}.key"
        self.certificate = folder / f"{name}.pem"
        extensions = ("-addext", "keyUsage=critical,keyCertSign")  # req -x509 makes it an authority by itself
        _openssl(
            *("req", "-x509", *_CURVE, "-nodes", "-days", "2", "-subj", f"/CN={name}", *extensions),
            *("-keyout", self._key, "-out", self.certificate),
        )

    def issue(
        self, name: str, *, hosts: str = _LOOPBACK, days: int = 2, key_password: str = ""
    ) -> Certificate:
        """Make a certificate for ``hosts``; with -1 days it has expired."""
        made, key, both = (self._folder / f"{name}.{end}" for end in ("pem", "key", "both"))
        request, names = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        names.write_text(f"subjectAltName={hosts}\n")
        guarded = ("-passout", f"pass:{key_password}") if key_password else ("-nodes",)
        _openssl("req", "-new", *_CURVE, *guarded, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key),
            *("-days", str(days), "-extfile", names, "-out", made),
        )
        both.write_text(key.read_text() + made.read_text())
        return Certificate(made, key, both)


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
