"""Rules for names of code on the JVM: Java, Kotlin, Scala, Clojure, and engines that make classes."""

from __future__ import annotations

from pipeline.counting.names.rule import NameRule, cut

_DESCRIPTOR = r"\((?:\[*(?:[BCDFIJSZ]|L[\w/$.-]+;))*"

JVM: tuple[NameRule, ...] = (
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
            (r"(LambdaForm\$[BD]?MH)\d{3,}(?=[./]|$)", r"\1"),
            (r"^((?:[a-z_][\w$]*[./])*[A-Z][\w$]*)/\d{8,}(?=\.(?!(?:[mc]?[jt]sx?|py|rb|php)\b)|$)", r"\1"),
        ),
        sign=r"[/.+]0x|/\d{8}|LambdaForm\$\w+/\d|LambdaForm\$(?:\w+\.|[BD]?MH)\d",
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
            (r"(?<=\w)\$lambda[$-]\d+(?:\$\d+)*(?=\$lambda|$)", ""),
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
        # and the number of a method in CGLIB's class
        ("$$", "$ByteBuddy", "$Hibernate", "$MockitoMock", "$auxiliary$", "_$$_", "CGLIB$"),
        cut(
            (r"\$\$((?:\w*By)?\w*CGLIB|\w*ByGuice|FastClass\w*)\$\$[0-9a-fA-F]+(?![0-9a-zA-Z])", r"$$\1"),
            (
                r"\$(ByteBuddy|HibernateProxy|HibernateInstantiator|HibernateAccessOptimizer|MockitoMock"
                r"|auxiliary)\$\w+",
                r"$\1",
            ),
            (r"(?<=\.)CGLIB\$(\w+)\$\d+$", r"CGLIB$\1"),
            (r"_\$\$_(?:javassist|jvst[0-9a-f]*)(?:_\d+)+", "_$$_javassist"),
        ),
    ),
    NameRule(
        "numbered-class",
        "Java, Groovy, JavaScript, Ruby, Python, Trino, Flink",
        # the number of a class that an engine makes of a script, an expression, a query or an adapter
        (
            "cript",
            "spel",
            "_pyx",
            "ASM",
            "$gen.",
            "Stream",
            "Batch",
            "AggsHandler$",
            "dubbo",
            "Dubbo",
            "RUBY$",
        ),
        cut(
            (r"^(Script)\d+(?=[.$])", r"\1"),
            (r"^(Script_)[0-9a-f]{32}(?=[.$])", r"\1"),
            (r"^(script)\d{13,}(?=[.$])", r"\1"),
            (r"(nashorn[./]internal[./]scripts[./]Script\$)(?:Recompilation\$)?\d+\$(?:\d+[A-Z]*\$)?", r"\1"),
            (r"(mozilla[./]javascript[./]gen[./]\w+?)_\d+(\._c_\w+?)_\d+$", r"\1\2"),
            (r"\b(spel[./]Ex)\d+(?=[./]|$)", r"\1"),
            (r"(pycode[./]_pyx)\d+(\.\w+)\$\d+$", r"\1\2"),
            (r"\b(ASMAccessorImpl_)\d+(?=[./]|$)", r"\1"),
            (r"\b(ASMSerializer|FastjsonASMDeserializer)_\d+(?=_\w)", r"\1"),
            (r"(\$gen\.[A-Za-z0-9$]+)(?:_\d{8}_\d{6}_\d{5}_[a-z0-9]{5}(?:_\d+)*)?_\d+(?=\.)", r"\1"),
            (
                r"^((?:Stream|Batch)(?:Exec)?(?:Calc|Correlate|Expand)"
                r"|(?:Local|Global|Incremental|State)*(?:Group|GroupingWindow|Window)AggsHandler)\$\d+(?=\.)",
                r"\1",
            ),
            (
                r"(dubbo\.common\.bytecode\.(?:Wrapper|[pP]roxy)|(?<=\w)Dubbo(?:Wrap|Proxy))\d+(?=[./]|$)",
                r"\1",
            ),
            (r"\b(RUBY\$(?:method|block)\$.+?)\$\d+$", r"\1"),
        ),
        sign=r"[sS]cript(?:_?[0-9a-f]|\$)|javascript[./]gen|spel[./]Ex\d|_pyx\d|ASM\w+_\d|\$gen\."
        r"|^(?:Stream|Batch)\w+\$\d|AggsHandler\$\d|ubbo.*\d|RUBY\$(?:method|block)",
    ),
    NameRule(
        "gensym",
        "Clojure",
        # the number of a generated name: fn__1234, eval1234; in a session of thousands, four digits or more
        ("__", "$eval"),
        cut(
            (r"(\$[a-zA-Z_]\w*?)__\d{4,}(?=[.$]|$)", r"\1"),
            (r"(\$fn)__\d+(?=[.$]|$)", r"\1"),
            (r"\$eval\d{3,}(?=[.$]|$)", "$eval"),
        ),
        sign=r"__\d{4}|\$fn__\d|\$eval\d{3}",
    ),
)
