"""What several suites share: builders, fleets, certificates, repositories, paths."""
