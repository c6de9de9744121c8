"""Files and written values: reading, validation, listing, unpacking, outputs."""
