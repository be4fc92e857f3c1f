"""Labels from given uniforms, by inversion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest._base.compiled import kernel
from caltest.predictions import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LabelSampler:
    """Turns uniforms into labels by inversion, exactly.

    Label k is drawn when u lies in [c_{k−1}, c_k), c the cumulative probabilities of the row, so
    a label of probability 0 never is.
    """

    cumulative: FloatArray

    @classmethod
    def of(cls, probs: FloatArray) -> LabelSampler:
        """Prepare the rows of ``probs``."""
        cumulative = np.cumsum(probs, axis=1)
        # Rounding may leave the last sum below 1: the last possible label takes what is left.
        last = probs.shape[1] - 1 - np.argmax(probs[:, ::-1] > 0.0, axis=1)
        cumulative[np.arange(probs.shape[1]) >= last[:, None]] = 1.0
        if probs.shape[1] == 2:
            cumulative = np.ascontiguousarray(cumulative[:, :1])
        return cls(cumulative)

    def __call__(self, uniforms: FloatArray, rows: IntArray | None = None) -> IntArray:
        """Return a label for every uniform; ``rows`` names its row, by default its own."""
        if self.cumulative.shape[1] == 1:
            first = self.cumulative[:, 0] if rows is None else self.cumulative[rows, 0]
            return (uniforms >= first).astype(np.int64)
        labels = np.empty(uniforms.size, dtype=np.int64)
        _invert(
            self.cumulative, np.arange(uniforms.size) if rows is None else rows, uniforms, labels
        )
        return labels


@kernel
def _invert(cumulative, rows, uniforms, labels_out):  # type: ignore[no-untyped-def]
    # Binary search: the first class whose cumulative probability exceeds u.
    last = cumulative.shape[1] - 1
    for i in range(uniforms.size):
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if cumulative[rows[i], middle] > uniforms[i]:
                high = middle
            else:
                low = middle + 1
        labels_out[i] = low
