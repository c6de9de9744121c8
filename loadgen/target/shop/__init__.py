"""The shop: a small web service whose endpoints do real work on a catalogue held in memory."""
