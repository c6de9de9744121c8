"""Long-run noise: the standard error of a mean of neighbouring, similar windows or periods.

Two estimators. ``batch_means`` measures it on means of long blocks; it needs long series, such as a scan's
history, and no model. ``autoregression`` models it by autocorrelation; it serves the few hundred periods of
two releases, and whitens them for generalised least squares.
"""
