"""Results of long computations, remembered by the content of what they were computed from."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Generic, TypeVar

import numpy as np

Result = TypeVar("Result")

#: Results that a memo keeps; they are small.
NEWEST = 64


class Memo(Generic[Result]):
    """Keeps the newest results, and digests of the arrays they belong to, not the arrays."""

    def __init__(self) -> None:
        self._results: dict[bytes, Result] = {}

    def of(self, compute: Callable[[], Result], *content: object) -> Result:
        """Return what is remembered of this content (arrays, numbers, text), or compute it."""
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
