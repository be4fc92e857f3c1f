"""A torchmetrics metric of calibration for training loops, Lightning and distributed evaluation.

Needs the extra ``caltest[torch]``.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray, one_of
from caltest.data import Predictions
from caltest.data.lenses import Lens, OneVsRest, TopK
from caltest.errors import (
    DoubtfulInputWarning,
    InvalidPredictionsError,
    UnmeasuredWarning,
)
from caltest.inference import calibration_test
from caltest.inference._input import Analysis, evaluated
from caltest.statistics import ECE, StatisticLike
from caltest.tallies import Tally
from caltest.tallies.grid import CELL_SUMS, GRID_CELLS, ROWS_A_TALLY, TOTALS, Grid, carried

try:
    import torch
    from torchmetrics import Metric
except ImportError:  # the page of the reference is made without them
    torch, Metric = None, object

if TYPE_CHECKING:
    from torch import Tensor

#: Which number of a test the metric is.
Value = Literal["estimate", "null_mean", "null_std", "pvalue"]

#: State of a metric that has seen no batch: the fewest classes of a batch.
NO_BATCH = 2**31


class CalibrationMetric(Metric):  # type: ignore[misc]
    """Calibration error, noise floor or p-value of all batches, as a ``torchmetrics.Metric``.

    The state is a :class:`Tally`: sums of whole numbers over micro-cells, 300 kB whatever the
    number of rows. Processes are synchronised by adding these sums, so that the answer does not
    depend, to the bit, on batches, their order or the number of processes.

    Parameters
    ----------
    statistic : Statistic, default ECE()
        Any statistic that takes a tally.
    value : {"estimate", "null_mean", "null_std", "pvalue"}, default "estimate"
        What :meth:`compute` returns: the statistic, its mean under calibration (noise floor), its
        standard deviation there, or the p-value of :func:`caltest.calibration_test`. Metrics of
        one collection that differ in ``statistic`` and ``value`` only share their state.
    lens : lens, optional
        Event that is assessed; by default class 1 for binary predictions, the top class otherwise.
    from_logits : bool, default False
        Whether ``preds`` are logits.
    ignore_index : int, optional
        Target of elements that are left out.
    grid : int, default 4800
        Number of micro-cells, as in :meth:`Tally.of`.
    rng : int, default 0
        Seed of simulated p-values; the same in every process.
    **kwargs
        Options of ``torchmetrics.Metric``, such as ``dist_sync_on_step``.

    Raises
    ------
    ImportError
        Without torch and torchmetrics.
    StatisticError
        For a statistic that does not take tallies.

    Notes
    -----
    A training run is never ended by this metric. A batch that cannot be measured (other shapes,
    NaN, values outside [0, 1]) makes the value NaN until :meth:`reset`, in every process, with one
    ``UnmeasuredWarning`` that says why. A sampler that repeats rows, as ``DistributedSampler``
    does to fill the last batch, makes them dependent: p-values are then slightly too small.

    Examples
    --------
    ::

        metrics = MetricCollection({
            "ece": CalibrationMetric(),
            "ece_noise_floor": CalibrationMetric(value="null_mean"),
        })
        for inputs, target in loader:
            metrics.update(model(inputs).softmax(1), target)
        metrics.compute()   # {"ece": tensor(0.0412), "ece_noise_floor": tensor(0.0130)}
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    sums: Tensor
    totals: Tensor
    fewest_classes: Tensor
    most_classes: Tensor
    refused: Tensor
    question: Tensor

    def __init__(
        self, statistic: StatisticLike = ECE(), value: Value = "estimate", *,
        lens: Lens | None = None, from_logits: bool = False, ignore_index: int | None = None,
        grid: int = GRID_CELLS, rng: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        if torch is None:
            raise ImportError(
                "caltest.torch needs torch and torchmetrics: pip install 'caltest[torch]'"
            )
        super().__init__(**kwargs)
        one_of("value", value, ("estimate", "null_mean", "null_std", "pvalue"))
        evaluated(
            statistic, Analysis.through(None, Tally.of(*TRIAL)).problem
        )  # a statistic of rows is refused before training
        self.statistic, self.value, self.lens, self.rng = statistic, value, lens, rng
        self.from_logits, self.ignore_index, self.grid = from_logits, ignore_index, grid
        width = Grid(grid).last + 1
        whole = {"dtype": torch.int64}
        self._keep("sums", torch.zeros((width, len(CELL_SUMS)), **whole), "sum")
        self._keep("totals", torch.zeros((1, len(TOTALS), 2), **whole), "sum")
        self._keep("fewest_classes", torch.tensor(NO_BATCH, **whole), "min")
        self._keep("most_classes", torch.tensor(0, **whole), "max")
        self._keep("refused", torch.tensor(0, **whole), "sum")
        # Metrics of a collection share their state where all of it is equal after one batch: this
        # part keeps those apart that ask different questions, and states of other questions out.
        question = repr((lens, from_logits, ignore_index, grid)).encode()
        digest = hashlib.blake2b(question, digest_size=16).digest()
        self._keep("question", torch.tensor(list(digest), **whole), "max")
        self._asked = digest
        self._reason, self._said, self._inside = "", False, False

    def _keep(self, name: str, default: Tensor, reduction: str) -> None:
        self.add_state(name, default, dist_reduce_fx=reduction, persistent=True)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch to this metric.

        A batch that cannot be measured makes the value NaN, with a warning; nothing is raised.

        Parameters
        ----------
        preds : Tensor of shape (B,), (B, K), (B, K, …) or the shape of ``target``
            Probabilities, or logits with ``from_logits``: of the event, or of K classes along
            axis 1, for B rows. Any device and floating-point type; rows of half precision are
            renormalised.
        target : Tensor of shape (B,) or (B, …)
            Classes from 0 to K − 1; 0, 1 or booleans where ``preds`` has its shape.
        """
        try:
            batch = self._tallied(preds, target)
        except Exception as error:
            self.refused = self.refused + 1
            self._reason = self._reason or f"{type(error).__name__}: {error}"
            self._unmeasured()
            return
        if batch is None:  # a batch without rows says nothing
            return
        k = batch.n_classes
        key, sums, totals = (
            torch.from_numpy(np.ascontiguousarray(part)).to(self.sums.device)
            for part in (batch.key, batch.sums, batch.totals)
        )
        self.sums = self.sums.index_add(0, key, sums)
        self.totals = _carried(self.totals + totals)
        self.fewest_classes = self.fewest_classes.clamp(max=k)
        self.most_classes = self.most_classes.clamp(min=k)

    def compute(self) -> Tensor:
        """Return the value over all batches and processes, a scalar tensor; NaN if unmeasured."""
        try:
            number = self._number()
        except Exception as error:
            self._reason = self._reason or f"{type(error).__name__}: {error}"
            self._unmeasured()
            number = float("nan")
        exact = self.device.type != "mps"  # which has no double precision
        return torch.tensor(
            number, dtype=torch.float64 if exact else torch.float32, device=self.device
        )

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Add a batch and return the value of this batch alone, a scalar tensor.

        The arguments are as in :meth:`update`.
        """
        self._inside = True  # torchmetrics resets within
        try:
            return super().forward(*args, **kwargs)
        finally:
            self._inside = False

    def reset(self) -> None:
        """Forget all batches, and the reasons for which batches could not be measured."""
        if not self._inside:
            self._reason, self._said = "", False
        super().reset()

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        super()._reduce_states(incoming_state)
        self.totals = _carried(self.totals)

    def tally(self) -> Tally:
        """Return the tally of all batches, which functions of caltest take in place of predictions.

        It has the rows of this process; within ``metric.sync_context()`` the rows of all processes.
        InvalidPredictionsError if a batch could not be measured, if there is none yet, and for a
        state that was loaded from a metric with other options.
        """
        few, most = int(self.fewest_classes), int(self.most_classes)
        if int(self.refused):
            raise InvalidPredictionsError(
                f"{int(self.refused)} batches could not be measured"
                + (f": {self._reason}" if self._reason else ", in another process")
            )
        if not most:
            raise InvalidPredictionsError("there are no rows yet: call update for every batch")
        if few != most:
            raise InvalidPredictionsError(f"batches have {few} and {most} classes")
        if self.question.tolist() != list(self._asked):
            raise InvalidPredictionsError(
                "the state was loaded from a metric with another lens, grid, from_logits or "
                "ignore_index"
            )
        sums: AnyArray = self.sums.cpu().numpy()
        if sums[:, 0].sum() > ROWS_A_TALLY:
            raise InvalidPredictionsError(f"a tally holds at most {ROWS_A_TALLY} rows")
        (key,) = np.nonzero(sums[:, 0])
        totals = carried(self.totals.cpu().numpy())
        lens = self.lens if self.lens is not None else OneVsRest(1) if most == 2 else TopK(1)
        named = Tally.of(np.full((1, most), 1.0 / most), [0], lens, self.grid)  # its lens, checked
        return Tally(
            named.lens, self.grid, most, None, np.ones(1), key, np.zeros(key.size, dtype=np.int64),
            sums[key], totals,
        )  # fmt: skip

    def _number(self) -> float:
        tally = self.tally()
        if self.value == "estimate":
            return evaluated(
                self.statistic, Analysis.through(None, tally).problem, tally.n_classes
            )[1]
        return float(
            getattr(calibration_test(tally, None, self.statistic, rng=self.rng), self.value)
        )

    def _tallied(self, preds: object, target: object) -> Tally | None:
        probs, labels = _kept_rows(preds, target, self.ignore_index, self.from_logits)
        if not len(probs):
            return None
        with warnings.catch_warnings():
            # labels of a batch may all be the top class: the doubt is about data sets
            warnings.simplefilter("ignore", DoubtfulInputWarning)
            data = Predictions.of(
                probs, labels, from_logits=self.from_logits, rounded=False, as_is=None
            )
            known = int(self.most_classes)
            if known not in (0, data.n_classes):
                raise InvalidPredictionsError(
                    f"batches have {known} and {data.n_classes} classes: reset between models"
                )
            return Tally.of(data, lens=self.lens, grid=self.grid)

    def _unmeasured(self) -> None:
        if self._said:
            return
        self._said = True
        message = f"the calibration metric is nan until it is reset: {self._reason}"
        warnings.warn(message, UnmeasuredWarning, stacklevel=3)


#: Rows on which a statistic shows whether it takes tallies.
TRIAL = (np.linspace(0.05, 0.95, 40), np.arange(40) % 3 == 0)


def _carried(totals: Tensor) -> Tensor:
    """Return totals (1, T, 2), pairs of whole numbers, with the second carried into [0, 2⁴³).

    Each of the T totals is high · 2⁻²⁰ + low · 2⁻⁶³ for a pair (high, low), and keeps its value.
    The tensor stays on its device.
    """
    return torch.from_numpy(carried(totals.cpu().numpy())).to(totals.device)


def _kept_rows(
    preds: object, target: object, ignored: int | None, from_logits: bool
) -> tuple[FloatArray, AnyArray]:
    """Return predictions (n,) or (n, K) and labels (n,), without elements to ignore.

    ``preds`` and ``target`` are tensors as torchmetrics takes them, with classes along axis 1 of
    ``preds``; ``ignored`` is a label to leave out, or None. Rows of half-precision probabilities
    are renormalised, but not with ``from_logits``. InvalidPredictionsError for shapes that do not
    fit.
    """
    p, y = torch.as_tensor(preds), torch.as_tensor(target)
    p, y = p.detach().cpu(), y.detach().cpu()
    if not p.is_floating_point():
        raise InvalidPredictionsError(f"preds are of type {p.dtype}, not of floating-point type")
    if y.is_complex():
        raise InvalidPredictionsError(f"target is of type {y.dtype}")
    eps = torch.finfo(p.dtype).eps if p.dtype in (torch.float16, torch.bfloat16) else 0.0
    if p.ndim == y.ndim + 1 and p.shape[1:2] == (1,):
        p = p.squeeze(1)
    if p.shape == y.shape:
        if p.ndim > 1 and p.shape[1] > 1 and bool((y.sum(dim=1) == 1).all()):
            raise InvalidPredictionsError(
                f"target has the shape of preds, {tuple(p.shape)}, and one 1 along axis 1: pass "
                "class numbers, target.argmax(1)"
            )
        p, y = p.reshape(-1, 1), y.reshape(-1)
    elif p.ndim == y.ndim + 1 and p.shape[0] == y.shape[0] and p.shape[2:] == y.shape[1:]:
        p, y = p.movedim(1, -1).reshape(-1, p.shape[1]), y.reshape(-1)
    else:
        raise InvalidPredictionsError(
            f"preds have shape {tuple(p.shape)} and target {tuple(y.shape)}: give one target for "
            "each prediction, with classes along axis 1 of preds"
        )
    if ignored is not None:
        p, y = p[y != ignored], y[y != ignored]
    probs: FloatArray = p.to(torch.float64).numpy()
    if not from_logits:
        probs = _repaired(probs, eps)
    return probs[:, 0] if probs.shape[1] == 1 else probs, y.numpy()


def _repaired(probs: FloatArray, eps: float) -> FloatArray:
    """Return rows (n, K) renormalised to sum 1, where half precision explains the difference.

    ``probs`` (n, K) are probabilities, ``eps`` the largest difference from 1 that is repaired;
    other rows, and a single column, stay.
    """
    if not eps or probs.shape[1] == 1:
        return probs
    sums = probs.sum(axis=1, keepdims=True)
    return np.where(np.abs(sums - 1.0) <= eps, probs / np.where(sums > 0.0, sums, 1.0), probs)
