"""Numbered SQL files, ``0001_what_it_does.sql`` onwards, applied in that order and never edited afterwards.

Several processes may apply the same file at the same moment, so every statement in one must do nothing the
second time: ``CREATE TABLE IF NOT EXISTS``, ``ALTER TABLE … ADD COLUMN IF NOT EXISTS``. A statement ends
with a semicolon at the end of a line.
"""
