"""How the languages besides Python write a definition, and how their stack frames spell it.

What a sampler prints for a subroutine: C its name; C++ ``ns::Class::method``; Java
``com.acme.A$Inner.method`` (with slashes in the package, as async-profiler prints it); Go
``path/of/package.(*Type).Method``; Rust ``krate::module::Type::method``; JavaScript ``Class.method``.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

Scope = tuple[str, ...]
"""Names of the types and namespaces around a definition, outermost first."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A line that begins a subroutine. ``receiver`` is Go's type with its star."""

    name: str
    scope: Scope = ()
    receiver: str = ""


@dataclass(frozen=True, slots=True)
class Language:
    """A language that is told by its file names."""

    name: str
    suffixes: tuple[str, ...]
    driver: str  # git's driver for the lines that hunk headers show
    ctags: str  # as ctags calls it
    suffix: str  # under which ctags knows it
    define: Callable[[str], Definition | None]
    spell: Callable[[Definition, str], tuple[str, ...]]  # with the module or package, perhaps ""
    manifest: str = ""  # the file, in a folder above, that names the module


MAX_LINE = 1000
"""How much of a line is looked at, in characters: what is longer was not written by hand."""

MAX_CLIMB = 2000
"""How many lines above a line are looked at for what stands around it."""

MAX_NAMESPACED = 20_000
"""In files of more lines, namespaces are not looked for: that takes a walk from the top for every line."""

_WORD = r"[A-Za-z_]\w*"
_TEMPLATE = re.compile(r"<[^<>()]*>")
# Quantifiers that keep what they took (*+, ++) keep matching linear: a line may be made to be slow.
_C_NAME = re.compile(rf"((?:{_WORD}\s*+::\s*+)*+~?{_WORD})$")
_C_OPERATOR = re.compile(rf"((?:\b{_WORD}\s*+::\s*+)*+)\boperator\s*+(\(\)|\[\]|[^\s\w(\[]++)\s*+\(")
_NOT_DEFINED = frozenset(
    (
        *("if", "for", "while", "switch", "catch", "return", "else", "do", "sizeof", "new", "delete"),
        *("throw", "case", "goto", "assert", "synchronized", "super", "this", "typeof", "await", "yield"),
        "function",
    )
)
_GO = re.compile(
    rf"func\s*+(?:\(\s*+(?:{_WORD}\s++)?(\*?)\s*+({_WORD})(?:\[[^\]]*+\])?\s*+\)\s*+)?({_WORD})\s*+[(\[]"
)
_RUST = re.compile(
    r"\s*+(?:(?:pub(?:\([^)]*+\))?|default|const|async|unsafe|extern(?:\s++\"[^\"]*+\")?)\s++)*+"
    rf"fn\s++({_WORD})"
)
_JS_NAME = r"[A-Za-z_$][\w$]*"
_JS_FUNCTION = re.compile(
    rf"\s*+(?:export\s++)?(?:default\s++)?(?:async\s++)?function\s*+\*?\s*+({_JS_NAME})"
)
_JS_ARROW = re.compile(
    rf"\s*+(?:export\s++)?(?:const|let|var|static|readonly|\s)*({_JS_NAME})\s*+(?::[^=]*+)?=\s*+"
    rf"(?:async\s*)?(?:function\b|\([^()]*+\)\s*+(?::[^=]*+)?=>|\($|{_JS_NAME}\s*+=>)"
)
_JS_METHOD = re.compile(
    r"\s*+(?:(?:static|async|get|set|public|private|protected|override|readonly)\s++|\*\s*+)*"
    rf"#?({_JS_NAME})\s*+(?:<[^<>]*+>)?\s*+\((?:[^;=]|=(?!>))*(?:\{{|,|\()\s*$"
)
_NAMESPACE = re.compile(r"namespace\s*([\w:]*)\s*\{(?!.*\})")
_NAMESPACE_END = re.compile(r"\}\s*(?://|/\*).*namespace")
_ANNOTATIONS = re.compile(r"(?:\s*+@[\w.]++(?:\([^()]*+\))?(?=\s|$))+")
_TYPE = re.compile(
    r"\s*+(?:[\w()]++\s++)*?(?:class|struct|interface|enum|record|namespace|trait|mod|impl)\b"
    r"(?:\s*+<[^>]*+>)?\s++(?:[^{;]*\sfor\s++)?"
    r"(?:[A-Z][A-Z0-9_]+\s++(?=\w++\s*+(?:final\s*+)?[:{]))?(?P<name>[\w:$]+)"  # past a macro of visibility
)


def language_of(path: str) -> Language | None:
    """Return the language of a file by its name, None for Python and all that is not known."""
    return _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())


def scope_above(lines: Sequence[str], number: int) -> Scope:
    """Return the types around a line (numbered from 1), as far as indentation shows them."""
    names: list[str] = []
    indent = _indent(lines[number - 1])
    for line in reversed(lines[max(number - 1 - MAX_CLIMB, 0) : number - 1]):
        if not indent:
            break
        if line.strip() and _indent(line) < indent:
            if found := _TYPE.match(line, 0, MAX_LINE):
                names.append(found["name"])
            indent = _indent(line)
    return (*_namespaces(lines, number), *reversed(names))


def _namespaces(lines: Sequence[str], number: int) -> Scope:
    """Return the C++ namespaces around a line, which are not indented; their ends bear a comment."""
    names: list[str] = []
    for line in lines[: number - 1] if number <= MAX_NAMESPACED else ():
        if not line.startswith(("namespace", "}")):
            continue
        if opened := _NAMESPACE.match(line, 0, MAX_LINE):
            names.append(opened[1] or "(anonymous namespace)")
        elif names and _NAMESPACE_END.match(line, 0, MAX_LINE):
            names.pop()
    return tuple(names)


def definition_above(language: Language, lines: Sequence[str], number: int) -> tuple[Definition, int] | None:
    """Return the nearest definition that a line (numbered from 1) is indented below, with its number."""
    indent = _indent(lines[number - 1])
    for above in range(number - 1, max(number - 1 - MAX_CLIMB, 0), -1):
        line = lines[above - 1]
        if not indent:
            break
        if line.strip() and _indent(line) < indent:
            if defined := language.define(line):
                return defined, above
            indent = _indent(line)
    return None


def _indent(line: str) -> int:
    expanded = line[:MAX_LINE].expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _define_c(line: str) -> Definition | None:
    line = line[:MAX_LINE]
    line = _ANNOTATIONS.sub("", line, count=1) if line.lstrip().startswith("@") else line
    if line.rstrip().endswith((";", "\\")) or line.lstrip().startswith(("#", "*", "/")):
        return None
    if found := _C_OPERATOR.search(line):
        return Definition(f"operator{found[2]}", tuple(re.findall(_WORD, found[1])))
    head, parenthesis, _ = line.partition("(")
    if not parenthesis:
        return None
    for _ in range(3):  # nested template arguments, from the inside
        head = _TEMPLATE.sub("", head)
    found = _C_NAME.search(head.rstrip())
    if not found:
        return None
    *scope, name = re.sub(r"\s", "", found[1]).split("::")
    before = head[: found.start()].split()
    if name in _NOT_DEFINED or set(before) & _NOT_DEFINED or any(c in "".join(before) for c in "=.!+|?\"'"):
        return None
    if not before and not scope and line[:1].isspace() and not line.rstrip().endswith("{"):
        return None  # a call, unless it is a constructor
    return Definition(name, tuple(scope))


def _define_go(line: str) -> Definition | None:
    found = _GO.match(line, 0, MAX_LINE)
    if not found:
        return None
    star, receiver, name = found.groups()
    return Definition(name, receiver=f"{star}{receiver}" if receiver else "")


def _define_rust(line: str) -> Definition | None:
    found = _RUST.match(line, 0, MAX_LINE)
    return Definition(found[1]) if found else None


def _define_js(line: str) -> Definition | None:
    line = line[:MAX_LINE]
    found = _JS_FUNCTION.match(line) or _JS_ARROW.match(line) or _JS_METHOD.match(line)
    if not found or found[1] in _NOT_DEFINED:
        return None
    return Definition(found[1])


def _spell_c(definition: Definition, module: str) -> tuple[str, ...]:
    return ("::".join([*definition.scope, definition.name]),)


def _spell_java(definition: Definition, module: str) -> tuple[str, ...]:
    scope = definition.scope
    name = "<init>" if scope and definition.name == scope[-1] else definition.name
    dotted = ".".join(part for part in (module, "$".join(scope), name) if part)
    slashed = ".".join(part for part in ("/".join([*module.split("."), "$".join(scope)]), name) if part)
    return (dotted, slashed) if module else (dotted,)


def _spell_go(definition: Definition, module: str) -> tuple[str, ...]:
    receiver = definition.receiver
    middle = f".({receiver})" if receiver.startswith("*") else f".{receiver}" if receiver else ""
    return (f"{module or 'main'}{middle}.{definition.name}",)


def _spell_rust(definition: Definition, module: str) -> tuple[str, ...]:
    return ("::".join(part for part in (module, *definition.scope, definition.name) if part),)


def _spell_js(definition: Definition, module: str) -> tuple[str, ...]:
    return (".".join([*definition.scope, definition.name]),)


_C_SUFFIXES = (".c", ".h")
_CPP_SUFFIXES = (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".c++", ".cu", ".ipp", ".inl")
_JS_SUFFIXES = (".js", ".mjs", ".cjs", ".jsx")
_TS_SUFFIXES = (".ts", ".mts", ".cts", ".tsx")

LANGUAGES = (
    Language("C", _C_SUFFIXES, "cpp", "C++", ".cpp", _define_c, _spell_c),
    Language("C++", _CPP_SUFFIXES, "cpp", "C++", ".cpp", _define_c, _spell_c),
    Language("Java", (".java",), "java", "Java", ".java", _define_c, _spell_java),
    Language("Go", (".go",), "golang", "Go", ".go", _define_go, _spell_go, "go.mod"),
    Language("Rust", (".rs",), "rust", "Rust", ".rs", _define_rust, _spell_rust, "Cargo.toml"),
    Language("JavaScript", _JS_SUFFIXES, "smidgen-js", "JavaScript", ".js", _define_js, _spell_js),
    Language("TypeScript", _TS_SUFFIXES, "smidgen-js", "TypeScript", ".ts", _define_js, _spell_js),
)

_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}

_JS_HEADERS = "\n".join(
    (
        r"!^[ \t]*(if|else|for|while|do|switch|catch|return|with|await|throw)[ \t]*[({]",
        r"^[ \t]*((export[ \t]+)?(default[ \t]+)?(async[ \t]+)?function[ \t*].*)$",
        r"^[ \t]*((export[ \t]+)?(const|let|var)[ \t]+[A-Za-z_$][A-Za-z0-9_$]*.*=[ \t]*"
        r"(async[ \t]*)?(function|\(|[A-Za-z0-9_$]+[ \t]*=>).*)$",
        r"^[ \t]*(((static|async|get|set|public|private|protected|override)[ \t]+)*"
        r"[A-Za-z_$#][A-Za-z0-9_$]*[ \t]*(<[^>]*>)?\([^;]*\{[ \t]*)$",
    )
)
"""Git has no driver of its own for JavaScript."""


def driver_options() -> tuple[str, ...]:
    """Return the options that define the drivers which git lacks."""
    headers = _JS_HEADERS.replace(r"\t", "\t")  # a bracket expression of POSIX knows no escapes
    return ("-c", f"diff.smidgen-js.xfuncname={headers}")


@contextmanager
def attributes_file() -> Iterator[str]:
    """Write a file of git attributes that gives each language its driver; it goes with the context."""
    with tempfile.NamedTemporaryFile("w", prefix="smidgen-", suffix=".gitattributes") as file:
        file.writelines(f"*{suffix} diff={lang.driver}\n" for suffix, lang in _BY_SUFFIX.items())
        file.flush()
        yield file.name
