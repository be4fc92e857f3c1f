"""A metric for loops over batches; torch itself is needed only where there are tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from caltest._base import FloatArray
from caltest.data import Predictions
from caltest.data.numbers import as_array, as_numbers
from caltest.errors import InvalidPredictionsError
from caltest.inference import calibration_test


class CalibrationMetric:
    """What a verb says of predictions that come in batches, with the methods of torchmetrics.

    ``verb`` is any function that takes a :class:`Predictions`, such as ``ct.audit`` or
    ``ct.ECE()``, and ``options`` are its own. ``gather`` turns the array of one process, (n, m),
    into the list of those of all: by default by ``torch.distributed`` where a process group is
    initialised. All else is as in :meth:`Predictions.of`, for every batch. Keeps 8 (K + 1) bytes a
    row. A sampler that repeats rows makes them dependent: p-values are then too small.

    Examples
    --------
    >>> metric = CalibrationMetric(null="exact")
    >>> for probs, labels in (([0.8, 0.3], [1, 0]), ([0.6], [0])):
    ...     metric.update(probs, labels)
    >>> metric.compute().n
    3
    """

    def __init__(
        self, verb: Callable[..., object] = calibration_test, *,
        gather: Callable[[FloatArray], list[FloatArray]] | None = None,
        classes: Sequence[object] | None = None, from_logits: bool = False,
        pos_label: object = None, **options: object,
    ) -> None:  # fmt: skip
        self.verb, self.options = verb, options
        self.classes, self.from_logits, self.pos_label = classes, from_logits, pos_label
        self._gather = _gathered if gather is None else gather
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._batches: list[FloatArray] = []

    def update(self, preds: object, target: object) -> None:
        """Add a batch: probabilities of shape (b,) or (b, K), and the observed classes.

        InvalidPredictionsError for what is no forecast, or not of as many classes as before.
        """
        data = Predictions.of(
            *(preds, target, self.classes),
            from_logits=self.from_logits, pos_label=self.pos_label, rounded=False, as_is=None,
        )  # fmt: skip
        self._add([np.column_stack([as_numbers(as_array(preds, "preds"), "preds"), data.labels])])

    def merge_state(self, other: Self) -> None:
        """Add what another metric has collected."""
        self._add(other._batches)

    def _add(self, batches: list[FloatArray]) -> None:
        _joined([*self._batches[:1], *batches])  # which refuses other numbers of classes
        self._batches += batches

    def compute(self) -> object:
        """Return what the verb says of all rows, of all processes."""
        rows = _joined(self._gather(_joined(self._batches)))
        if not rows.size:
            raise InvalidPredictionsError("there are no rows yet: call update for every batch")
        labels = rows[:, -1].astype(np.int64)
        # An error would end a training run: what the values say against them is a note
        data = Predictions.of(rows[:, :-1], labels, from_logits=self.from_logits, as_is=True)
        return self.verb(Predictions.of(data, classes=self.classes), **self.options)


def _joined(parts: list[FloatArray]) -> FloatArray:
    filled = [part for part in parts if part.size]
    widths = {part.shape[1] - 1 for part in filled}
    if len(widths) > 1:
        raise InvalidPredictionsError(
            f"batches have {' and '.join(map(str, sorted(widths)))} columns of probabilities: "
            "reset between models"
        )
    return np.concatenate(filled) if filled else np.empty((0, 0))


def _gathered(rows: FloatArray) -> list[FloatArray]:
    """Return the rows of every process: the same list in all of them, and nothing is pickled."""
    dist = sys.modules.get("torch.distributed")  # without it there is one process
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return [rows]
    torch = sys.modules["torch"]
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    size = torch.tensor(rows.shape, device=device)
    shapes = [torch.zeros_like(size) for _ in range(dist.get_world_size())]
    dist.all_gather(shapes, size)
    longest, widest = torch.stack(shapes).max(dim=0).values.tolist()
    padded = torch.zeros((longest, widest), dtype=torch.float64, device=device)
    padded[: rows.shape[0], : rows.shape[1]] = torch.from_numpy(rows)
    parts = [torch.empty_like(padded) for _ in shapes]
    dist.all_gather(parts, padded)
    sizes = [shape.tolist() for shape in shapes]
    return [part[:n, :m].cpu().numpy() for part, (n, m) in zip(parts, sizes, strict=True)]
