"""Rules for names of languages with a runtime: Java, .NET, JavaScript, PHP, Python, Ruby."""

from __future__ import annotations

from pipeline.counting.names.rule import NameRule, cut

_DESCRIPTOR = r"\((?:\[*(?:[BCDFIJSZ]|L[\w/$.-]+;))*"

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
        "class-descriptor",
        "Java",
        # that a name is written as the JVM describes a class, as perf-map-agent does: Lcom/acme/Shop;::total
        (";::", ";."),
        cut((r"^L([\w/$.-]+);(?:::|\.)(?=[\w$<])", r"\1.")),
        sign=r"^L[\w/$.-]+;",
    ),
    NameRule(
        "jvm-lambda",
        "Java",
        # the number and address of a lambda's class: $$Lambda$123/0x00007f1c2401a840
        # or its method, number and address: $$Lambda$total$1$1234567890.0x0000000000020abc
        ("$$Lambda",),
        cut(
            (r"\$\$Lambda\$([A-Za-z_]\w*(?:\$[A-Za-z_]\w*)*?)(?:\$\d+)*[./+]0x[0-9a-fA-F]+", r"$$Lambda$\1"),
            (
                r"\$\$Lambda(?:\$(?:0x)?[0-9a-fA-F]+(?=[/.+]|$))?"
                r"(?:/(?:0x)?[0-9a-fA-F]+(?=[./(]|$)|[.+]0x[0-9a-fA-F]+|\.\d{5,}(?=\.|$))?",
                "$$Lambda",
            ),
        ),
    ),
    NameRule(
        "hidden-class",
        "Java",
        # the address or number of a hidden class
        ("/", "+0x", ".0x", "LambdaForm$"),
        cut(
            (r"(?<=[\w$])[/.+]0x[0-9a-fA-F]{6,16}(?=[./(]|$)", ""),
            (r"(LambdaForm\$\w+)(?:/\d+|\.\d{5,})(?=[./(]|$)", r"\1"),
            (r"(?<=[\w$])/\d{8,}(?=\.|$)", ""),
        ),
        sign=r"[/.+]0x|/\d|LambdaForm\$\w+\.\d",
    ),
    NameRule(
        "signature",
        "Java",
        # the signature of a method: (Ljava/lang/String;I)V
        ("(",),
        cut(
            (_DESCRIPTOR + r"\)\[*(?:[VBCDFIJSZ]|L[\w/$.-]+;?)$", ""),
            (_DESCRIPTOR + r"\[*L[\w/$.-]+;?$", ""),  # where a format has cut it at its semicolon
        ),
    ),
    NameRule(
        "lambda-method",
        "Java, Kotlin, Scala",
        # the number of a lambda's method, which belongs to the method around it: lambda$total$3
        ("lambda", "$anonfun"),
        cut(
            (r"\.lambda\$new\$\d+$", ".<init>"),
            (r"\.lambda\$static\$\d+$", ".<clinit>"),
            (r"\.lambda\$null\$\d+$", ".lambda"),
            (r"\.lambda\$([\w$]+?)\$(?:lambda\$)?\d+$", r".\1"),
            (r"(?<=\w)\$lambda[$-]\d+", ""),
            (r"\$\$anonfun\$([a-zA-Z]\w*)\$\d+\.apply(?:\$\w+)?$", r".\1"),
            (r"\.\$anonfun\$([a-zA-Z]\w*)\$\d+(?:\$adapted)?$", r".\1"),
            (r"(?<=\.)(\w[\w$]*?)(?:\$\$anonfun\$\d+)+(?:\$adapted)?$", r"\1"),  # Scala 3
        ),
        sign=r"lambda[$-]|\$anonfun",
    ),
    NameRule(
        "accessor",
        "Java",
        # the number of a class that reflection generates
        ("Accessor",),
        cut((r"(Generated(?:Method|Constructor|SerializationConstructor)Accessor)\d+", r"\1")),
        sign=r"Accessor\d",
    ),
    NameRule(
        "proxy",
        "Java",
        # the number of a proxy's class and of its module
        ("$Proxy", "proxy"),
        cut((r"\$Proxy\d+", "$Proxy"), (r"\bjdk([./])proxy\d+(?=[./])", r"jdk\1proxy")),
        sign=r"[Pp]roxy\d",
    ),
    NameRule(
        "generated-class",
        "Java",
        # the hash of a class that CGLIB, Byte Buddy, Javassist or a mock library generates
        ("$$", "$ByteBuddy", "$HibernateProxy", "$MockitoMock", "_$$_"),
        cut(
            (r"\$\$((?:\w*By)?\w*CGLIB|\w*ByGuice|FastClass\w*)\$\$[0-9a-fA-F]+(?![0-9a-zA-Z])", r"$$\1"),
            (r"\$(ByteBuddy|HibernateProxy|HibernateInstantiator|MockitoMock)\$\w+", r"$\1"),
            (r"_\$\$_(?:javassist|jvst[0-9a-f]*)(?:_\d+)+", "_$$_javassist"),
        ),
    ),
    NameRule(
        "gensym",
        "Clojure",
        # the number of a generated name: fn__1234, eval1234
        ("__", "$eval"),
        cut((r"(\$[a-zA-Z_][\w]*?)__\d+(?=[.$]|$)", r"\1"), (r"\$eval\d+(?=[.$]|$)", "$eval")),
        sign=r"__\d|\$eval\d",
    ),
    NameRule(
        "jit-tier",
        "JavaScript",
        # how far V8 has compiled a function: LazyCompile:*, JS:~
        (":*", ":~", ":^", ":+", ":'", "LazyCompile:", "Function:"),
        cut((r"^(?:LazyCompile|Function|JS|Script|Eval):(?!:)[*~^+']*(?=.)", "JS:")),
    ),
    NameRule(
        "wasm-tier",
        "WebAssembly",
        # which of V8's compilers has compiled a function
        ("-liftoff", "-turbofan"),
        cut((r"(?<=[\w\]])-(?:liftoff|turbofan)$", "")),
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
        ("-fun-", "-anonymous-", "lc$^", "bc$^"),
        cut(
            (
                r"'?-([^\s'/-][^\s'/]*/\d+)-(?:fun|anonymous|(?:b?lc|l?bc|bbc)\$\^\d+/\d+)-\d+-'?(?:/\d+)?$",
                r"\1",
            ),
        ),
    ),
    NameRule(
        "bound",
        "JavaScript",
        # that a function is bound or async
        ("bound ", "async "),
        cut((r"^(?:bound |async )+(?=[\w$#<(])", "")),
    ),
    NameRule(
        "bundle-hash",
        "JavaScript",
        # the content hash of a bundle's file
        (".js", ".mjs", ".cjs"),
        cut((r"[.-](?=[0-9a-f]*\d)[0-9a-f]{8,32}(?=(?:\.min)?\.[mc]?js\b)", "")),
    ),
    NameRule(
        "php-closure",
        "PHP",
        # the line of a closure, an anonymous class or code that is evaluated
        ("{closure:", "@anonymous", "eval()'d"),
        cut(
            (r"(?:\(\d+\)|:\d+)? : eval\(\)'d code", " : eval'd code"),
            (r"^\{closure:([^/{}]+?)\(\):\d+\}$", r"\1"),
            (r"(\{closure:[^{}]*?)(?::\d+|\(\d+\))(?=\})", r"\1"),
            (r"(@anonymous)\x00?([^:$]*)(?::\d+)?(?:\$[0-9a-f]+)(?=::|$)", r"\1\2"),
        ),
    ),
    NameRule(
        "state-machine",
        ".NET",
        # the classes that C# makes of lambdas, local functions and async methods
        (">d", ">b__", ">g__", ">c__DisplayClass"),
        cut(
            (r"[.+]<>c(?:__DisplayClass\d+_\d+)?(?:`\d+)?(?:\[[^\[\]]*\])?(?=(?:[.+]|::)<)", ""),
            (r"[.+]<>c__DisplayClass\d+_\d+(?:`\d+)?(?=\.\w)", ""),
            (
                r"(?:[.+]|::)<(?:(\w+)|<(\w+)>(?:\$|[bg]__[\w|]+))>d(?:__\d+)?(?:`\d+)?(?:\[[^\[\]]*\])?"
                r"(?:[.+]|::)MoveNext(?=\W|$)",
                r".\1\2",
            ),
            (r"::<(\w+)>[bg]__(?:\w+\|)?\d+(?:_\d+)?(?=\W|$)", r"::\1"),
            (r"[.+]<<(\w+)>\$>[bg]__(?:\w+\|)?\d+(?:_\d+)?(?=\W|$)", r".\1"),
            (r"[.+]<(\w+)>[bg]__(?:\w+\|)?\d+(?:_\d+)?(?=\W|$)", r".\1"),
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
        # the number of a method that is generated at run time
        ("lambda_method",),
        cut((r"\blambda_method\d+", "lambda_method")),
    ),
    NameRule(
        "net-type",
        ".NET",
        # the types of a generic: List`1[System.__Canon]
        ("`",),
        cut((r"(`\d+)\[[^()]*?\]+(?=[.+(!]|$)", r"\1")),
    ),
    NameRule(
        "notebook",
        "Python",
        # the process and cell of a notebook, and the number of a generated module
        ("ipykernel", "ipython-input", "<decorator-gen-"),
        cut(
            (r"\bipykernel_\d+[./]\d+", "ipykernel"),
            (r"<ipython-input-[\w-]+>", "<ipython-input>"),
            (r"<decorator-gen-\d+>", "<decorator-gen>"),
        ),
    ),
    NameRule(
        "ruby-block",
        "Ruby",
        # blocks, which belong to the method around them
        (" in ",),
        cut((r"^(?:(?:block|rescue|ensure)(?: \(\d+ levels\))? in )+(?=\S)", "")),
    ),
)
