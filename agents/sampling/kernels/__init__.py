"""Kernels: what samples a process. A new one is a module here and a line below."""

from agents.sampling.kernels import async_profiler, austin, perf, pyspy
from agents.sampling.kernels.base import (
    AUTO,
    CALL_GRAPHS,
    AutoKernel,
    CallGraph,
    Kernel,
    KernelRun,
    SamplerError,
    Sampling,
    kernel_names,
    make_kernel,
    register,
    suitable_kernels,
)
from agents.sampling.kernels.choice import Runtime

register(pyspy.NAME, pyspy.PySpy, Runtime.PYTHON)
register(austin.NAME, austin.Austin, Runtime.PYTHON)
register(perf.NAME, perf.Perf, Runtime.COMPILED)
register(async_profiler.NAME, async_profiler.AsyncProfiler, Runtime.JAVA)

__all__ = [
    "AUTO",
    "CALL_GRAPHS",
    "AutoKernel",
    "CallGraph",
    "Kernel",
    "KernelRun",
    "Runtime",
    "SamplerError",
    "Sampling",
    "kernel_names",
    "make_kernel",
    "register",
    "suitable_kernels",
]
