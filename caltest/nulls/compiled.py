"""Decorators for compiled kernels, the only place of compiler options; and a cache of results.

:class:`kernel` compiles a function with numba when it is first called and caches it on disk where
that is possible; with NUMBA_DISABLE_JIT=1 all kernels run as Python. :class:`Memo` caches results
by content.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from hashlib import blake2b
from types import FunctionType
from typing import Any, ClassVar, Generic, TypeVar, cast
from zlib import crc32

import numpy as np

#: What is compiled: its arguments have no types before it is called.
Compilable = Callable[..., Any]


class kernel:  # noqa: N801 (used as a decorator)
    """Compile a function with numba at its first call, never at import.

    Compiled code is kept on disk and releases the interpreter lock, so that kernels run side by
    side in threads. A kernel takes arrays and scalars, checks nothing, and calls nothing but
    :class:`inlined` helpers, which call nothing: what is on disk is renewed when these change.
    """

    options: ClassVar[dict[str, object]] = {}

    def __init__(self, function: Compilable) -> None:
        self.py_func = function
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Compilable:
        import numba

        source = cast(FunctionType, self.py_func)
        scope = source.__globals__
        called = [n for n in source.__code__.co_names if isinstance(scope.get(n), inlined)]
        if called:
            helpers = {n: numba.njit(inline="always")(scope[n].py_func) for n in called}
            source = FunctionType(source.__code__, {**scope, **helpers}, source.__name__)
            # Numba looks at the file of the kernel only: helpers of others are part of its name.
            codes = [scope[n].py_func.__code__ for n in called]
            text = repr([(code.co_code, code.co_consts) for code in codes])
            source.__qualname__ = f"{self.py_func.__qualname__}_{crc32(text.encode()):08x}"
            source.__module__ = self.py_func.__module__
        try:
            return numba.njit(cache=True, nogil=True, **self.options)(source)
        except (RuntimeError, OSError):  # no folder of the cache can be written
            _say_uncached()
            return numba.njit(nogil=True, **self.options)(source)

    def __call__(self, *args: object) -> Any:
        return self.compiled(*args)


@cache
def _say_uncached() -> None:
    """Print, once a process, that compiled code cannot be cached and how to change that."""
    print(
        "caltest: no folder for compiled code can be written, so that every run compiles for some "
        "seconds: set NUMBA_CACHE_DIR to one that can",
        file=sys.stderr,
    )


class dense_kernel(kernel):  # noqa: N801 (used as a decorator)
    """Compiled kernel for sums over long arrays; additions may be reordered, for vector speed."""

    options: ClassVar[dict[str, object]] = {"error_model": "numpy", "fastmath": {"reassoc"}}


class lane_kernel(kernel):  # noqa: N801 (used as a decorator)
    """Compiled kernel whose inner loops run over replicates; floating-point order is kept."""

    options: ClassVar[dict[str, object]] = {"error_model": "numpy"}


class counter_kernel(kernel):  # noqa: N801 (used as a decorator)
    """Compiled kernel that draws random bits from counters; products wrap at 2⁶⁴ by design."""

    options: ClassVar[dict[str, object]] = {"error_model": "numpy"}

    @cached_property
    def compiled(self) -> Compilable:
        """Compiled function; when interpreted, NumPy's overflow warnings are suppressed."""
        import numba
        import numpy as np

        function: Compilable = super().compiled
        # Only these kernels are excused: a sum of bytes that wraps elsewhere is a mistake.
        return np.errstate(over="ignore")(function) if numba.config.DISABLE_JIT else function


class inlined:  # noqa: N801 (used as a decorator)
    """Helper that is compiled into the kernels that call it."""

    def __init__(self, function: Compilable) -> None:
        self.py_func = function
        update_wrapper(self, function)

    def __call__(self, *args: object) -> Any:
        return self.py_func(*args)


# ------------------------------------------------------------------------------
# A cache of the results of long computations, keyed by the content of their inputs.


Answered = TypeVar("Answered")


#: Results that a memo keeps; they are small.
NEWEST = 64


class Memo(Generic[Answered]):
    """Cache of the newest results, keyed by digests of the input, which it does not keep."""

    def __init__(self) -> None:
        self._results: dict[bytes, Answered] = {}

    def of(self, compute: Callable[[], Answered], *content: object) -> Answered:
        """Return ``compute()``, or its earlier result for equal ``content``.

        ``content`` are the arrays, numbers and texts on which the result depends.
        """
        digest = blake2b(digest_size=16)
        for part in content:
            values = np.ascontiguousarray(part)
            digest.update(f"{values.shape}{values.dtype}".encode())
            digest.update(values.tobytes())
        key = digest.digest()
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = compute()
            if len(self._results) > NEWEST:
                self._results.pop(next(iter(self._results)), None)
        return result
