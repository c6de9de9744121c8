"""The one place where stages read the store: plain frozen values come out."""
