"""Kernel calibration errors: SKCE over pairs of rows, MMCE of confidences, UCME at locations."""

from caltest.statistics.kernel.kernels import GaussianKernel, LaplaceKernel, TVKernel
from caltest.statistics.kernel.mmce import MMCE
from caltest.statistics.kernel.skce import SKCE
from caltest.statistics.kernel.ucme import UCME

__all__ = ["MMCE", "SKCE", "UCME", "GaussianKernel", "LaplaceKernel", "TVKernel"]
