"""HTTP served by any process: access, listening, limits."""
