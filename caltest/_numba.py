"""Compiled kernels, and the only place where compiler options live."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any


class kernel:  # noqa: N801 (used as a decorator)
    """Compile a function with numba at its first call, never at import.

    Compiled code is kept on disk (``cache=True``) and releases the interpreter lock
    (``nogil=True``), so that kernels run side by side in ordinary threads. A kernel is a leaf: it
    takes arrays and scalars, checks nothing, and calls no other kernel.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The compiled function."""
        import numba

        compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(self.py_func)
        return compiled

    def __call__(self, *args: Any) -> Any:
        return self.compiled(*args)
