"""The detector of the KDD 2018 paper."""
