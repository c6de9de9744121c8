"""Number of threads of linear algebra."""

SINGLE_THREADED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Environment variables that numpy reads when it is imported.

Matrices of a stage are small, and a worker shares its cores: one thread per core would mostly wait for the
others, which took 50 times the CPU time on a busy machine.
"""
