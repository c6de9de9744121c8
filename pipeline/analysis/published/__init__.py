"""Published methods beside our own: SOMDedup, exclusive stacks, KDD 2018's detector, Liao's forests."""
