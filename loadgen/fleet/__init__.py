"""A simulated fleet whose truth is known: what every claim about accuracy is measured with."""
