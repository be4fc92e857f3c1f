"""Kernel calibration errors: SKCE over pairs of rows, MMCE of confidences."""

from caltest.statistics.kernel.kernels import GaussianKernel, LaplaceKernel, TVKernel
from caltest.statistics.kernel.line import MMCE
from caltest.statistics.kernel.skce import SKCE

__all__ = ["MMCE", "SKCE", "GaussianKernel", "LaplaceKernel", "TVKernel"]
