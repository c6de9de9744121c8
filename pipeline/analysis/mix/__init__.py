"""Who sent samples: what of a rise is their mix, and what the releases that they run differ in."""
