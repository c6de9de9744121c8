"""The noise of series: at which scale, and what a service's series say of each other's."""
