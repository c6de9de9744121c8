"""Messages as bytes: one JSON object each, checked completely on the way in.

``measurements`` (profiles, metrics) and ``inputs`` (changes, feedback) hold what arrives from outside,
``scans`` what travels between stages, ``events`` what leaves. Every ``decode_*`` raises InvalidMessage with
the field and the reason.
"""
