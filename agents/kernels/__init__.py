"""Kernels: what samples a process. A new one is a module here and a line below."""

from agents.kernels import pyspy
from agents.kernels.base import AUTO, Kernel, Run, SamplerError, Sampling, kernel_names, make_kernel, register

register(pyspy.NAME, pyspy.PySpy)

__all__ = ["AUTO", "Kernel", "Run", "SamplerError", "Sampling", "kernel_names", "make_kernel", "register"]
