"""Rules for names of languages with a runtime: .NET, JavaScript, PHP, Python, Ruby, BEAM."""

from __future__ import annotations

import re

from pipeline.counting.names.hashes import without_bundle_hash
from pipeline.counting.names.rule import NameRule, cut

_CYTHON = re.compile(r"^__pyx_(?:pw|pf|gb)_")
_NUMBERED = re.compile(r"(\d+)(?=[A-Za-z_])")


def _without_cython_index(name: str) -> str:
    """Return a name of Cython without its function's number, which follows its module's and class' names.

    Those begin with their length: ``__pyx_pw_4shop_4cart_5total`` is of ``shop.cart.total``.
    """
    head = _CYTHON.match(name)
    position = head.end() if head else len(name)
    while number := _NUMBERED.match(name, position):
        end = number.end() + int(number[1]) if len(number[1]) < 4 else 0
        if name[end : end + 1] != "_" or end <= number.end() or not name[end + 1 : end + 2]:
            return name[:position] + name[number.end() :]
        position = end + 1
    return name


MANAGED: tuple[NameRule, ...] = (
    NameRule(
        "pstats",
        "Python",
        # the line that pstats puts before a function's name: app.py:12(total)
        ("(",),
        cut((r"^([^()]*\.\w{1,4}):\d+\((.+)\)$", r"\2 (\1)"), (r"^~:0\((.+)\)$", r"\1")),
        sign=r":\d+\(",
    ),
    NameRule(
        "jit-tier",
        "JavaScript",
        # how far V8 has compiled a function: LazyCompile:*, JS:~
        (":*", ":~", ":^", ":+", ":'", "LazyCompile:", "Function:", "*", "~", "^", "+"),
        cut(
            (r"^(?:LazyCompile|Function|JS|Script|Eval):(?!:)[*~^+']*(?=.)", "JS:"),
            (r"^[*~^+](?=\S+ (?:node:|\S+\.[mc]?[jt]s\b))", ""),
        ),
        sign=r":[*~^+']|^LazyCompile:|^Function:|^(?:JS|Script|Eval):[*~^+']|^[*~^+]\S+ ",
    ),
    NameRule(
        "wasm-tier",
        "WebAssembly",
        # which of V8's compilers has compiled a function, and the function's number in its module
        # and the hash and the offset of a module
        ("-liftoff", "-turbofan", "wasm://wasm/"),
        cut(
            (r"(?<=[\w\]])(?:-\d+)?-(?:liftoff|turbofan)$", ""),
            (
                r"(?<=wasm://wasm/)((?:[\w.+]+(?:-[\w.+]+)*?)?)-?[0-9a-f]{8}(?:(?::\d+)?:0x[0-9a-f]+)?(?=:|$)",
                r"\1",
            ),
        ),
    ),
    NameRule(
        "trace",
        "Lua",
        # the number of a trace of LuaJIT, which begins at the line that follows
        ("TRACE_",),
        cut((r"^TRACE_\d+(?=::)", "TRACE")),
        sign=r"^TRACE_\d+::",
    ),
    NameRule(
        "beam-fun",
        "Erlang, Elixir",
        # funs and comprehensions, which belong to the function around them: -total/2-fun-0-
        # and the numbers of processes
        ("-fun-", "-anonymous-", "-inlined-", "^", "<"),
        cut(
            (
                r"['\"]?-([^\s'\"/-][^\s'\"/]*/\d+)"
                r"-(?:fun|anonymous|inlined|(?:b?lc|l?bc|bbc)\$\^\d+/\d+|\w+\^\w+/\d+)-\d+-['\"]?(?:/\d+)?$",
                r"\1",
            ),
            (r"^<\d+\.\d+\.\d+>$", "<pid>"),
        ),
        sign=r"-(?:fun|anonymous|inlined)-\d|\^\w+/\d|<\d+\.\d+\.\d+>$",
    ),
    NameRule(
        "bound",
        "JavaScript",
        # that a function is bound or async
        ("bound ", "async "),
        cut((r"^(?:bound |async )+(?=[\w$#<(])", "")),
    ),
    NameRule(
        "script-position",
        "JavaScript",
        # the line after a file without an ending, and what keeps browsers from using a file again
        ("node:", "<anonymous>:", ".js?", ".mjs?"),
        cut(
            (r"(?<![\w:])(node:[a-z][\w/.-]*)(?::\d+){1,2}(?=\)?$)", r"\1"),
            (r"(?<=evalmachine\.<anonymous>)(?::\d+){1,2}(?=\)?$)", ""),
            (
                r"(\.m?js)\?(?:(?:v|t|ts|ver|version|hash|h|cb|_|rev|build|import)(?:=[\w.-]*)?|[0-9a-f.]{6,})"
                r"(?::\d+){0,2}(?=\)?$)",
                r"\1",
            ),
        ),
        sign=r"node:\S+:\d|<anonymous>:\d|\.m?js\?",
    ),
    NameRule(
        "bundle-hash",
        "JavaScript",
        # the content hash of a bundle's file
        (".js", ".mjs", ".cjs"),
        without_bundle_hash,
    ),
    NameRule(
        "php-closure",
        "PHP",
        # the line of an anonymous class or of evaluated code, and closures, which belong to their function
        ("{closure:", "@anonymous", "eval()'d"),
        cut(
            (r"(?:\(\d+\)|:\d+)? : eval\(\)'d code", " : eval'd code"),
            (r"(?:(?<![\w\\])[\w\\]+::)?\{closure:([\w\\]+(?:::\w+)?)(?:\(\))?(?::\d+)?\}", r"\1"),
            (r"\{closure:(\{closure:[^{}]*\}):\d+\}", r"\1"),
            (r"(\{closure:[^{}]*?)(?::\d+|\(\d+\))(?=\})", r"\1"),
            (r"(@anonymous)\x00?([^:$]*)(?::\d+)?(?:\$[0-9a-f]+)(?=::|$)", r"\1\2"),
        ),
    ),
    NameRule(
        "php-cache",
        "PHP",
        # the hash of a class or a template that a framework compiles
        ("Container", "Ghost", "Proxy", "content_"),
        cut(
            (
                r"(?:^|(?<=[\\/ ]))Container(?=[A-Za-z0-9]*\d|[A-Za-z0-9]+[A-Z])[A-Za-z0-9]{7}(?=[\\/]"
                r"(?:get\w+Service\b|\w*(?:Kernel|Debug)\w*Container\b|\w+(?:Ghost|Proxy)[0-9a-fA-F]{7}\b))",
                "Container",
            ),
            (r"(?<=\w)(Ghost|Proxy)(?=[0-9a-fA-F]*\d[a-f])[0-9a-fA-F][0-9a-f]{6}(?=::|$)", r"\1"),
            (r"\bcontent_[0-9a-f]{13,14}_\d{8}\b", "content"),
        ),
        sign=r"Container[A-Za-z0-9]{7}[\\/]|(?:Ghost|Proxy)[0-9a-fA-F]{7}(?:::|$)|content_[0-9a-f]{13}",
    ),
    NameRule(
        "state-machine",
        ".NET",
        # the classes that C# makes of lambdas, local functions and async methods
        (">d", ">b__", ">g__", ">c__"),
        cut(
            (r"[.+]<>c(?:__DisplayClass\d+_\d+|__\d+)?(?:`\d+)?(?:\[[^\[\]]*\])?(?=(?:[.+]|::)<)", ""),
            (r"[.+]<>c__(?:DisplayClass\d+_)?\d+(?:`\d+)?(?=\.\w)", ""),
            (
                r"(?:[.+]|::)<(?:([\w.-]+)|<([\w.-]+)>(?:\$|[bg]__[\w|]+))>d(?:__\d+)?(?:`\d+)?(?:\[[^\[\]]*\])?"
                r"(?:[.+]|::)MoveNext(?=\W|$)",
                r".\1\2",
            ),
            (r"::<([\w.-]+)>[bg]__(?:\w+\|)?\d+(?:_\d+)?(?=\W|$)", r"::\1"),
            (r"[.+]<<([\w.-]+)>\$>[bg]__(?:\w+\|)?\d+(?:_\d+)?(?=\W|$)", r".\1"),
            (r"[.+]<([\w.-]+)>[bg]__(?:\w+\|)?\d+(?:_\d+)?(?=\W|$)", r".\1"),
        ),
    ),
    NameRule(
        "net-tier",
        ".NET",
        # how far the runtime has compiled a method, in its map files: [OptimizedTier1]
        ("[Optimized", "[PreJIT]", "[QuickJitted]", "[MinOptJitted]", "[InstrumentedTier", "[Tier"),
        cut(
            (
                r"(?<=\))\[Tier\d\]$|(?<=[\w)])\[(?:Optimized|OptimizedTier1(?:OSR)?|PreJIT|QuickJitted"
                r"|MinOptJitted|InstrumentedTier\d?)\]$",
                "",
            ),
        ),
    ),
    NameRule(
        "net-proxy",
        ".NET",
        # the number of a proxy's class
        ("Castle.Proxies.",),
        cut((r"\b(Castle\.Proxies\.\w+?Proxy)_\d+(?=[.:+])", r"\1")),
    ),
    NameRule(
        "dynamic-method",
        ".NET",
        # the number of a method, of a regular expression, a proxy or a script that is generated at run time
        ("lambda_method", "Regex", "generatedProxy_", "Submission#"),
        cut(
            (r"\blambda_method\d+", "lambda_method"),
            (r"\b(Regex)\d+(_(?:Go|Scan|FindFirstChar|TryMatchAtCurrentPosition|TryFindNext\w+))\b", r"\1\2"),
            (r"\b(generatedProxy)_\d+(?=[.:+]|$)", r"\1"),
            (r"\b(Submission#)\d+(?=[.+])", r"\1"),
        ),
        sign=r"lambda_method\d|Regex\d|generatedProxy_\d|Submission#\d",
    ),
    NameRule(
        "net-type",
        ".NET",
        # the types of a generic: List`1[System.__Canon], Start[[System.Int32, mscorlib]]
        ("`", "[["),
        cut((r"(`\d+)\[[^()]*?\]+(?=[.+(!]|$)", r"\1"), (r"(?<=\w)\[\[[^()]*\]\](?=[.+(]|$)", "")),
    ),
    NameRule(
        "notebook",
        "Python",
        # the process and cell of a notebook, and the number or hash of a generated module or function
        (
            *("ipykernel", "ipython-input", "<decorator-gen-", "<lambdifygenerated-", "_cython_magic_"),
            *("<eval_with_key>", "__compiled_fn_", "resume_", "torchinductor"),
        ),
        cut(
            (r"\bipykernel_\d+[./]\d+", "ipykernel"),
            (r"<ipython-input-[\w-]+>", "<ipython-input>"),
            (r"<(decorator-gen|lambdifygenerated)-\d+>(?::\d+(?=\)))?", r"<\1>"),
            (r"\b_cython_magic_[0-9a-f]{32,64}\b", "_cython_magic"),
            (r"(<eval_with_key>)\.\d+(?::\d+)?", r"\1"),
            (r"\b__compiled_fn_\d+(?:_[0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12})?\b", "__compiled_fn"),
            (r"\b(torch_dynamo_resume_in_\w+?_at)_\d+\b", r"\1"),
            (r"\b__resume_at_\d+_\d+\b", "__resume_at"),
            (r"(torchinductor_\w+)(?:/[a-z2-7]{2})?/c[a-z2-7]{50,51}(?=\.py)", r"\1/c"),
        ),
        sign=r"ipykernel_\d|<ipython-input|<(?:decorator-gen|lambdifygenerated)-\d|_cython_magic_[0-9a-f]"
        r"|<eval_with_key>|__compiled_fn_\d|resume_\w*at_\d|torchinductor_\w+/",
    ),
    NameRule(
        "cython-index",
        "Python",
        # the number of a function in its Cython module: __pyx_pw_4shop_4cart_5total
        ("__pyx_pw_", "__pyx_pf_", "__pyx_gb_"),
        _without_cython_index,
    ),
    NameRule(
        "ruby-block",
        "Ruby",
        # blocks, which belong to the method around them
        (" in ",),
        cut((r"^(?:(?:block|rescue|ensure)(?: \(\d+ levels\))? in )+(?=\S)", "")),
    ),
    NameRule(
        "ruby-template",
        "Ruby",
        # the hash and the object's number in the name of a compiled template
        ("__",),
        cut((r"((?:^|[#. ])_\w+?)_{2,3}\d{10,}_\d+$", r"\1"), (r"((?:^|[#. ])__tilt)_\d+$", r"\1")),
        sign=r"__\d{10,}_\d+$|__tilt_\d",
    ),
)
