"""Rules for names of languages that compile to machine code: C++, Go, Rust, Swift and others."""

from __future__ import annotations

import re

from pipeline.counting.names.brackets import outline
from pipeline.counting.names.rule import NameRule, cut

_GO_PACKAGES = (
    "bufio|bytes|cmp|context|errors|flag|fmt|io|iter|log|maps|net|os|plugin|reflect|runtime|slices|sort"
    "|strconv|strings|sync|syscall|testing|time|unique|unsafe|weak|main"
)
"""Packages of Go without a slash in their path, by which its names differ from Python's."""

_GO_CLOSURE = re.compile(r"^(.+?)\.?(?:\.(?:func|gowrap|deferwrap)\d+(?:\.\d+)*|-fm|-range\d+|·dwrap·\d+)+$")
_GO_ONLY = re.compile(
    rf"/|\(\*|\[|^(?:{_GO_PACKAGES})\.|\.(?:gowrap|deferwrap)\d|\.func\d+\.(?:func)?\d|-fm$|-range\d+$|·dwrap·|^glob\."
)


def _without_go_closure(name: str) -> str:
    found = _GO_CLOSURE.match(name)
    # Python and others have functions called func1; Go's closures stand in a function of a package.
    return found[1] if found and _GO_ONLY.search(name) and "." in found[1] else name


_RUST_ESCAPES = {
    "$LT$": "<",
    "$GT$": ">",
    "$LP$": "(",
    "$RP$": ")",
    "$RF$": "&",
    "$BP$": "*",
    "$C$": ",",
    "$u20$": " ",
    "$u22$": '"',
    "$u27$": "'",
    "$u2b$": "+",
    "$u3b$": ";",
    "$u5b$": "[",
    "$u5d$": "]",
    "$u7b$": "{",
    "$u7d$": "}",
    "$u7e$": "~",
}
_RUST_ESCAPE = re.compile("|".join(map(re.escape, _RUST_ESCAPES)))


def _with_rust_signs(name: str) -> str:
    plain = _RUST_ESCAPE.sub(lambda found: _RUST_ESCAPES[found[0]], name)
    if plain == name:
        return name
    plain = plain.replace("`_<", "`<")
    return re.sub(r"(?<=[\w>\]])\.\.(?=[\w<])", "::", plain).removeprefix("_" if plain[1:2] == "<" else "")


NATIVE: tuple[NameRule, ...] = (
    NameRule(
        "clone",
        "C, C++",
        # the numbers of a compiler's copies and parts: .constprop.0, .isra.0, .part.1, .cold, .llvm.123
        (".", "[clone"),
        cut(
            (r"(?<=.) \[clone \.[^\[\]]+\]", ""),
            (r"(?<=.) \(\.[a-z][\w.]*\)$", ""),
            (
                r"(?<=.)(?:\.(?:constprop|isra|part|cold|lto_priv|llvm|ipa_sra|simdclone|resolver|localalias"
                r"|specialized|omp_fn|warm|unlikely|default|arch_\w+|avx\w*|sse\w*)\.\d+)+(?:\.cold|\.localalias)?$",
                "",
            ),
            (r"((?:::|\)|^_Z)[^.]*|^[A-Za-z_]\w*)\.(?:cold|localalias)$", r"\1"),
            (r"(?<=\w)\.(omp_outlined|omp_outlined_debug__)\.*\d+$", r".\1"),
        ),
        sign=r"\[clone| \(\.|\.\d|\.(?:cold|localalias)$|\.omp_outlined",
    ),
    NameRule(
        "local-lambda",
        "C++",
        # the number of Clang's and Microsoft's lambdas
        ("::$_", "<lambda"),
        cut(
            (r"::\$_\d+(?:::(?:operator\(\)|__invoke)(?:<[^()]*>)?)?(?=\W|$)", ""),
            (r"<lambda_[0-9a-f]{32}>", "<lambda>"),
            (r"<lambda_\d+>", "<lambda>"),
        ),
    ),
    NameRule(
        "go-closure",
        "Go",
        # closures and wrappers, which belong to the function around them: .func1.2, .gowrap1, -fm
        (".func", ".gowrap", ".deferwrap", "-fm", "-range", "·dwrap·"),
        _without_go_closure,
        sign=r"\.(?:func|gowrap|deferwrap)\d|-fm$|-range\d|·dwrap·\d",
    ),
    NameRule(
        "go-shape",
        "Go",
        # the types of a generic function, which Go itself shortens to [...]
        ("[go.shape.",),
        cut((r"\[go\.shape\.[^()]*\](?=[.)]|$)", "[...]")),
    ),
    NameRule(
        "rust-escape",
        "Rust",
        # the escapes of half demangled names: $LT$, $u20$
        ("$",),
        _with_rust_signs,
        sign=r"\$(?:[LG]T|[LR]P|RF|BP|C|u\w\w)\$",
    ),
    NameRule(
        "rust-hash",
        "Rust",
        # the hash of a build
        ("::h", "17h", "["),
        cut(
            (r"(?<=.)::h[0-9a-f]{16}(?![0-9a-zA-Z_])", ""),
            (r"^(_ZN.+)17h[0-9a-f]{16}E(?=$|\.)", r"\1E"),
            (r"(?<=\w)\[[0-9a-f]{8,16}\](?=::|$|>)", ""),
        ),
        sign=r"::h[0-9a-f]{16}|17h[0-9a-f]{16}|\[[0-9a-f]{8}",
    ),
    NameRule(
        "rust-closure",
        "Rust",
        # closures, which belong to the function around them, and the numbers of impl blocks
        ("{",),
        cut(
            (r"(?<=.)::_?\{\{(?:closure|closure_env|impl|constant)\}\}", ""),
            (r"(?<=.)::\{(?:closure|closure_env|impl|constant)#\d+\}", ""),
            (r"(?<=.)(?:::)?\{\{vtable\.shim\}\}|(?<=.)(?:::)?\{shim:vtable#\d+\}", ""),
        ),
    ),
    NameRule(
        "swift-closure",
        "Swift",
        # closures, which belong to the function around them
        ("closure #",),
        cut((r"^(?:closure #\d+ (?:\([^()]*\) (?:-> \S+ )?)?in )+(?=\S)", ""), (r" -> [^()]*$", "")),
    ),
    NameRule(
        "stamp",
        "Julia, OCaml",
        # the number that a compiler ends a name with
        ("julia_", "jfptr_", "japi1_", "jlsys_", "jlplt_", "gfptr_", "caml"),
        cut(
            (r"^((?:julia|jfptr|japi1|jlsys|jlplt|gfptr)_.+?)(?:_\d+)+$", r"\1"),
            (r"^(caml[A-Z]\w*?(?:__|\.)\w+?)_\d+(?:_code)?$", r"\1"),
        ),
    ),
    NameRule(
        "arguments",
        "C++, Rust, Java, .NET",
        # arguments, type parameters, return types, ABI tags and lambdas
        ("<", "(", "{lambda", "'lambda", "[abi:"),
        outline,
    ),
)
