"""Labels from given uniforms, by inversion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
        """Return a label for every uniform; ``rows`` names its row, by default its own. O(n K)."""
        labels = np.zeros(uniforms.size, dtype=np.int64)
        for upto in self.cumulative.T:  # the number of cumulative probabilities passed
            labels += uniforms >= (upto if rows is None else upto[rows])
        return labels
