"""Messages as types: the declarations that JSON Schema and the AsyncAPI document are generated from.

``inputs``, ``scans`` and ``events`` declare what the codecs of the same names read and write. The codecs
check by hand, which is faster and names the field that is wrong; tests hold both to each other.
"""
