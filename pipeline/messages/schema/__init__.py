"""Messages as types: what decoders check, and JSON Schema and the AsyncAPI document are generated from.

``inputs``, ``scans``, ``ledger`` and ``events`` declare each object once. ``pipeline.messages.records``
checks JSON against a declaration and makes the record of ``pipeline.model`` that has its fields.
"""
