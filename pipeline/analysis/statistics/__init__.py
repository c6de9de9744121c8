"""Statistics of several rooms: block means, robust scale, long-run noise, bootstrap, always-valid bounds."""
