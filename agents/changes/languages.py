r"""How the languages besides Python write a definition, and how their stack frames spell it.

What a sampler prints for a subroutine: C its name; C++ ``ns::Class::method``; Java, Kotlin and Scala
``com.acme.A$Inner.method`` (with slashes in the package, as async-profiler prints it); Go
``path/of/package.(*Type).Method``; Rust ``krate::module::Type::method``; JavaScript ``Class.method``; C#
``Acme.Shop.Class.Method``; PHP ``Acme\Shop\Class::method``; Ruby ``Shop::Class#method``.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
    ctags: str  # as ctags calls it; empty where it is not asked
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

_OPENERS = ("", "{")  # a bracket of its own belongs to the line above it
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
    r"\s*+(?:[\w()]++\s++)*?(?:enum\s++(?:class|struct)|class|struct|interface|enum|record|namespace|trait|mod"
    r"|impl|(?:module|object)(?=\s++[A-Z]))\b"
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
        if line.strip() not in _OPENERS and _indent(line) < indent:
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
        if line.strip() not in _OPENERS and _indent(line) < indent:
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


def _define_by(pattern: str) -> Callable[[str], Definition | None]:
    """Return what finds a definition whose name is the pattern's only group."""
    compiled = re.compile(pattern)

    def define(line: str) -> Definition | None:
        found = compiled.match(line, 0, MAX_LINE)
        return Definition(found[1]) if found else None

    return define


def _define_csharp(line: str) -> Definition | None:
    head, arrow, _ = line[:MAX_LINE].partition("=>")  # int Total() => 1;
    return _define_c(head.rstrip() if arrow else line)


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


def _spell_kotlin(definition: Definition, module: str) -> tuple[str, ...]:
    package, _, file = module.rpartition(".")  # what stands in no class becomes a method of its file's
    return _spell_java(replace(definition, scope=definition.scope or (file,)), package)


def _spell_scala(definition: Definition, module: str) -> tuple[str, ...]:
    scope = definition.scope  # the methods of a class, and those of an object
    spelt = [
        replace(definition, scope=(*scope[:-1], f"{last}{end}")) for last in scope[-1:] for end in ("", "$")
    ]
    return tuple(name for one in spelt or [definition] for name in _spell_java(one, module))


def _spell_csharp(definition: Definition, module: str) -> tuple[str, ...]:
    scope = definition.scope
    while scope and scope[0] == module.partition(".")[0]:  # a namespace with a body, which the module is too
        scope = scope[1:]
    name = ".ctor" if scope and definition.name == scope[-1] else definition.name
    return (".".join(part for part in (module, *scope, name) if part),)


def _spell_php(definition: Definition, module: str) -> tuple[str, ...]:
    owner = "\\".join(part for part in (module, "\\".join(definition.scope)) if part)
    return (f"{owner}{'::' if definition.scope else chr(92)}{definition.name}" if owner else definition.name,)


def _spell_ruby(definition: Definition, module: str) -> tuple[str, ...]:
    owner = "::".join(definition.scope)
    return (f"{owner}#{definition.name}", f"{owner}.{definition.name}") if owner else (definition.name,)


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

_MODIFIERS = r"\s*+(?:(?:[a-z]++(?:\[\w*+\])?|@[\w.]++(?:\([^()]*+\))?)\s++)*?"
_define_php = _define_by(_MODIFIERS + rf"function\s++&?({_WORD})\s*+\(")
_define_kotlin = _define_by(_MODIFIERS + rf"fun\s[^(]{{0,200}}?({_WORD})`?\s*+\(")  # past type and receiver
_define_scala = _define_by(_MODIFIERS + r"def\s++([\w$]++)")
_define_ruby = _define_by(_MODIFIERS + rf"def\s++(?:{_WORD}\.)?({_WORD}[?!=]?)")

HEADED = (
    Language("PHP", (".php",), "php", "", "", _define_php, _spell_php),
    Language("Kotlin", (".kt", ".kts"), "kotlin", "", "", _define_kotlin, _spell_kotlin),
    Language("Scala", (".scala",), "scala", "", "", _define_scala, _spell_scala),
    Language("C#", (".cs",), "csharp", "", "", _define_csharp, _spell_csharp),
    Language("Ruby", (".rb",), "ruby", "", "", _define_ruby, _spell_ruby),
)
"""Languages that are always told by hunk headers."""

_BY_SUFFIX = {suffix: language for language in (*LANGUAGES, *HEADED) for suffix in language.suffixes}

# Shell and SQL are not among them: no sampler names their functions.
_UNREAD_SUFFIXES = frozenset(
    (
        *(".pyx", ".pxd", ".pxi", ".swift", ".m", ".mm", ".dart", ".lua", ".pl", ".pm", ".r", ".jl"),
        *(".erl", ".hs", ".ml", ".fs", ".vb", ".clj", ".groovy", ".zig", ".nim", ".d", ".cr", ".f90"),
        *(".ex", ".exs", ".vue", ".svelte", ".phtml", ".pas", ".lisp", ".el", ".tcl", ".asm", ".s"),
    )
)

INTERPRETED = re.compile(rb"#!.*?(?:python|ruby|perl|php|node|lua|Rscript)")
"""How a file without a suffix begins whose functions a sampler of that language sees."""


def may_be_unread_code(path: str) -> bool | None:
    """Tell whether a file holds code that is not read, by its name; None where its first line must tell."""
    suffix = PurePosixPath(path).suffix.lower()
    return None if not suffix else suffix in _UNREAD_SUFFIXES


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
