"""What no line of Smidgen does: run data as code, check no certificate, or write a value into SQL."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cases import for_every
from tests.support.paths import ROOT

SOURCES = sorted(path for name in ("pipeline", "agents", "loadgen") for path in (ROOT / name).rglob("*.py"))
STORAGE = sorted((ROOT / "pipeline" / "storage").rglob("*.py"))

UNSAFE_MODULES = frozenset(
    {
        *("pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"),
        *("xmlrpc", "telnetlib", "ftplib"),
    }
)
UNSAFE_CALLS = frozenset(
    {
        *("eval", "exec", "os.system", "os.popen", "tempfile.mktemp", "pandas.read_pickle", "pd.read_pickle"),
        *("yaml.unsafe_load", "yaml.full_load", "yaml.unsafe_load_all", "yaml.full_load_all"),
        *("yaml.load_all", "ssl._create_unverified_context", "ssl._create_stdlib_context"),
    }
)
SAFE_LOADERS = frozenset({"yaml.SafeLoader", "yaml.CSafeLoader"})
UNSAFE_KEYWORDS = frozenset({("shell", True), ("allow_pickle", True), ("check_hostname", False)})
UNSAFE_ATTRIBUTES = frozenset({"CERT_NONE", "CERT_OPTIONAL"})

Finding = tuple[int, str]


def dotted(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def unsafe(tree: ast.Module) -> Iterator[Finding]:
    """Yield where a module runs data as code, or trusts whom it does not know."""
    loaders = SAFE_LOADERS | {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and SAFE_LOADERS & {dotted(base) for base in node.bases}
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            )
            found = [name for name in modules if name.split(".")[0] in UNSAFE_MODULES]
            yield from ((node.lineno, f"import {name}") for name in found)
        if isinstance(node, ast.Attribute) and node.attr in UNSAFE_ATTRIBUTES:
            yield node.lineno, node.attr
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith(".check_hostname"):
            yield node.lineno, "check_hostname"
        if isinstance(node, ast.Call):
            yield from unsafe_call(node, loaders)


def unsafe_call(node: ast.Call, loaders: frozenset[str] | set[str]) -> Iterator[Finding]:
    name = dotted(node.func)
    if name in UNSAFE_CALLS:
        yield node.lineno, name
    if name in ("yaml.load", "yaml.compose", "yaml.parse", "yaml.scan"):
        given = [keyword.value for keyword in node.keywords if keyword.arg == "Loader"] + node.args[1:]
        if not given or dotted(given[0]) not in loaders:
            yield node.lineno, f"{name} without a safe loader"
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if (keyword.arg, value) in UNSAFE_KEYWORDS:
            yield node.lineno, f"{keyword.arg}={value!r}"


STATEMENT = re.compile(
    r"\b(SELECT|INSERT INTO|FROM|WHERE|AND|OR|ORDER BY|GROUP BY|LIMIT|SETTINGS|ALTER|CREATE|DROP|DELETE)\b"
)
RUNS_SQL = frozenset(
    {
        *("query", "query_np", "query_df", "query_arrow", "query_rows_stream", "query_row_block_stream"),
        *("query_column_block_stream", "raw_query", "raw_stream", "command", "raw_insert"),
        *("_columns", "_numbers", "_run"),  # of ClickHouseStore, which pass it on
    }
)

# They put the name of a cluster into a statement, which they allow no character that could end it.
LAYOUTS = frozenset({"layout.table", "layout.database", "self._layout.table"})

# Names of columns that stand in schema.py, numbers of parameters, and conditions made of these alone.
NO_VALUES = frozenset({"', '.join(names)", "number", "conditions"})


def formatted_sql(tree: ast.Module) -> Iterator[Finding]:
    """Yield where a text that looks like SQL is put together from more than constants and NO_VALUES."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
            holes = [ast.unparse(part.value) for part in node.values if isinstance(part, ast.FormattedValue)]
            if STATEMENT.search(text):
                yield from ((node.lineno, hole) for hole in holes if hole not in NO_VALUES)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.Add):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if is_sql(side) and not isinstance(other, ast.Constant | ast.JoinedStr):
                    yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            fills = node.func.attr in ("format", "format_map", "replace", "join")
            if fills and is_sql(node.func.value):
                yield node.lineno, ast.unparse(node)


def unbound_sql(tree: ast.Module) -> Iterator[Finding]:
    """Yield where a statement is run that is neither a constant nor put together above it.

    Constants are those of the module and of ``pipeline.storage.queries``.
    """
    queries = ast.parse((ROOT / "pipeline/storage/queries.py").read_text(encoding="utf-8"))
    constants = constants_of(tree) | {f"queries.{name}" for name in constants_of(queries)}
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        # What a function is handed, its callers here answer for; what it makes, formatted_sql looks at.
        known = constants | {argument.arg for argument in function.args.args}
        known |= {
            target.id
            for node in ast.walk(function)
            for target in (node.targets if isinstance(node, ast.Assign) else [])
            if isinstance(target, ast.Name) and isinstance(node, ast.Assign) and is_text(node.value)
        }
        loops = [node for node in ast.walk(function) if isinstance(node, ast.For)]
        known |= {dotted(loop.target) for loop in loops if is_over_statements(loop)}
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                first = node.args[0]
                laid_out = isinstance(first, ast.Call) and dotted(first.func) in LAYOUTS
                first = first.args[0] if isinstance(first, ast.Call) and laid_out else first
                base = first.value if isinstance(first, ast.Subscript) else first
                if (
                    node.func.attr in RUNS_SQL
                    and dotted(base) not in known
                    and not isinstance(base, ast.Constant)
                ):
                    yield node.lineno, ast.unparse(first)


def constants_of(tree: ast.Module) -> set[str]:
    return {
        dotted(target)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if all(isinstance(leaf, ast.Constant) for leaf in leaves(node.value))
    }


def leaves(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Dict):
        return [leaf for value in node.values for leaf in leaves(value)]
    return [node]


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_over_statements(loop: ast.For) -> bool:
    """Return whether it goes over the statements of a migration, which are files of the package."""
    return dotted(loop.iter).endswith(".statements")


def is_sql(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and bool(STATEMENT.search(node.value))
        and len(node.value) > 8
    )


def findings(check: Callable[[ast.Module], Iterator[Finding]], paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in paths
        for line, text in check(ast.parse(path.read_text(encoding="utf-8")))
    ]


@pytest.mark.slow
def test_no_data_is_run_and_no_certificate_passes_unseen() -> None:
    assert len(SOURCES) > 100
    assert findings(unsafe, SOURCES) == []


def test_no_value_is_written_into_sql() -> None:
    assert len(STORAGE) > 5
    assert findings(formatted_sql, STORAGE) == []


def test_every_statement_is_a_constant_or_made_of_constants() -> None:
    assert findings(unbound_sql, STORAGE) == []


TRIED: dict[Callable[[ast.Module], Iterator[Finding]], tuple[tuple[str, ...], tuple[str, ...]]] = {
    unsafe: (
        (
            *("import pickle", "from pickle import loads", "import xmlrpc.client"),
            *("eval(text)", "os.system(text)", "yaml.load(text)", "yaml.unsafe_load(text)"),
            *("yaml.load(text, Loader=yaml.Loader)", "yaml.load(text, yaml.FullLoader)"),
            "class L(yaml.Loader): pass\nyaml.load(text, Loader=L)",
            *("np.load(file, allow_pickle=True)", "subprocess.run(text, shell=True)"),
            *("context.verify_mode = ssl.CERT_NONE", "context.check_hostname = False"),
            "ssl._create_unverified_context()",
        ),
        (
            *("import json", "yaml.load(text, Loader=yaml.SafeLoader)", "evaluate(text)"),
            "class L(yaml.SafeLoader): pass\nyaml.load(text, Loader=L)",
            "np.load(file, allow_pickle=False)",
        ),
    ),
    formatted_sql: (
        (
            "f\"SELECT a FROM t WHERE service = '{service}'\"",
            'f" AND service = {service!r}"',
            "'SELECT a FROM t WHERE service = %s' % service",
            "'SELECT a FROM t WHERE service = {}'.format(service)",
            "'SELECT a FROM t WHERE service = ' + service",
            "_SQL = 'SELECT a FROM t WHERE service = NAME'.replace('NAME', service)",
        ),
        (
            "f\"SELECT {', '.join(names)} FROM {{table:Identifier}}\"",
            'f" AND {{column{number}:Identifier}} = {{value{number}:String}}"',
            "'SELECT a ' + 'FROM t'",
            "f'the store at {where} does not answer'",
        ),
    ),
    unbound_sql: (
        (
            "def f(client, service):\n    sql = render(service)\n    client.query(sql)",
            "def f(client, service):\n    client.command(render(service))",
        ),
        ("_SQL = 'SELECT 1'\ndef f(client):\n    client.query(_SQL, {})",),
    ),
}
"""For each check, sources that it finds and sources that it leaves alone."""


@for_every("check", TRIED)
def test_each_check_finds_what_it_should_and_nothing_else(
    check: Callable[[ast.Module], Iterator[Finding]],
) -> None:
    wrong, right = TRIED[check]
    assert [source for source in wrong if not list(check(ast.parse(source)))] == []
    assert [source for source in right if list(check(ast.parse(source)))] == []
