"""One regression per cause: pure functions over the candidates of a scan."""
