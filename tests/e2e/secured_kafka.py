"""Secured Apache Kafka for its tests: users, their rights, their logins, and commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from aiokafka.protocol.admin import CreateAclsRequest

from pipeline.kafka import Broker, admin_client
from pipeline.settings.config import load_settings
from tests.support.certificates import Authority

SECRET = "a-password-nobody-sees"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required {};"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
LOGINS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "plain.sasl.jaas.config": PLAIN.format(
        f'user_smidgen-aggregate="{SECRET}" user_smidgen-agent="{SECRET}"'
    ),
    "scram-sha-256.sasl.jaas.config": SCRAM,
    "scram-sha-512.sasl.jaas.config": SCRAM,
}
RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # whoever comes over the plain listener, which only this test knows
}
DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
STAGES = ("aggregate", "detect", "releases", "filter", "dedup", "rootcause", "judge")
USERS = ("agent", "exporter", "changes", *STAGES, "subscriber", "alerts", "operator")

Environment = Mapping[str, str]


def keystore(authority: Authority, name: str, **issued: str | int) -> dict[str, str]:
    """Return the properties of a listener that shows a new certificate."""
    certificate = authority.issue(name, **issued)  # type: ignore[arg-type]
    return {
        **{"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificate.both)},
        **{"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.certificate)},
    }


def login(authority: Authority, user: str, *, password: str = SECRET, **more: str) -> dict[str, str]:
    """Return the environment of a user of the secured broker."""
    given = {"broker_ca": str(authority.certificate), "sasl_username": f"smidgen-{user}"}
    given |= {"broker_security": "sasl_ssl", "sasl_password": password, **more}
    return {f"SMIDGEN_{key.upper()}": value for key, value in given.items() if value}


def connection(broker: str, environ: Environment) -> Broker:
    return Broker.of(load_settings({"broker": broker}, environ=environ))


def smidgen(environ: Environment, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", *arguments]
    return subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, timeout=400, check=False
    )


def assert_refused(done: subprocess.CompletedProcess[str], text: str) -> None:
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
    assert text in done.stderr, done.stderr
    assert SECRET not in done.stderr


# ResourceType, AclOperation and ResourcePatternType of Kafka's protocol.
RESOURCES = {"--topic": 2, "--group": 3, "--cluster": 4}
OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "Alter": 7, "Describe": 8, "DescribeConfigs": 10}
LITERAL, ALLOW, ANY_HOST = 3, 3, "*"

Right = tuple[str, str, int, str]
"""Principal, operation, type of resource, its name."""


def documented_rights() -> list[Right]:
    """Return the rights that docs/security.md gives: its lines for kafka-acls.sh, loops unrolled."""
    text = DOCUMENT.read_text(encoding="utf-8")
    lines = re.findall(r"^acl (--allow-principal .+)$", text, re.MULTILINE)
    for names, body in re.findall(r"^for stage in ([\w ]+); do\n  acl (.+)\ndone$", text, re.MULTILINE):
        lines += [body.replace("$stage", name) for name in names.split()]
    rights = []
    for line in lines:
        words = line.replace("'", "").split()
        given = list(zip(words[::2], words[1::2], strict=True))
        principals = [value for flag, value in given if flag == "--allow-principal"]
        operations = [value for flag, value in given if flag == "--operation"]
        positions = [(RESOURCES[flag], value) for flag, value in given if flag in RESOURCES]
        rights += [(p, o, kind, name) for p in principals for o in operations for kind, name in positions]
    return rights


async def grant(broker: str, rights: list[Right]) -> None:
    async with admin_client(broker) as client:
        for principal, operation, kind, name in rights:
            answer = await client._send_request(
                CreateAclsRequest(kind, name, LITERAL, principal, ANY_HOST, OPERATIONS[operation], ALLOW)
            )
            assert [code for code, _ in answer.creation_responses] == [0]
