"""Messages as bytes: one JSON object each, checked completely on the way in.

``inputs`` holds what arrives from outside (profiles, metrics, changes), ``scans`` what travels between
stages, ``events`` what leaves. Every ``decode_*`` raises InvalidMessage with the field and the reason.
"""
