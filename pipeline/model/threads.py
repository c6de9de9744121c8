"""How many threads linear algebra may use."""

SINGLE_THREADED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Variables of the environment, read when numpy is imported.

Matrices of a stage are small, and a worker shares its cores with others: threads for each core would mostly
wait for one another, which took 50 times the CPU time on a busy machine.
"""
