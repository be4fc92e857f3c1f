"""The tally of a question that leaves more than two classes: sums over leaves of a fixed tree."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self, Unpack

import numpy as np

from caltest._base.compiled import kernel
from caltest._base.written import name_of
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.lenses import Canonical, Lens, LensLike
from caltest.predictions import Facts, IntArray
from caltest.tally.base import AnyTally
from caltest.tally.grid import MOST_ROWS, carried
from caltest.tally.rows import AT_ONCE, HIGH, LOW, UNIT
from caltest.tally.stored import LENSES
from caltest.tally.tally import rows_of
from caltest.tally.tree import SimplexTree

#: What a leaf keeps of every class: Σ p, Σ p² and the number of its labels.
SUMS = ("p", "squares", "labels")
#: The totals over rows: the log score, its promise and its variance; Σ |p|² − p_y, Σ |p|² and
#: Σ (Σ_k p_k³ − |p|⁴), which Brier scores are made of.
TOTALS = ("log_score", "entropy", "log_variance", "brier_gap", "squares", "brier_variance")
#: The version of the stored form.
VERSION = 1


@dataclass(frozen=True, eq=False)
class VectorTally(AnyTally):
    """What a question about whole vectors needs to know of any number of rows.

    The simplex is cut into the leaves of a :class:`SimplexTree`, fitted to the predictions of a
    first sample. Each leaf that is occupied keeps n, Σ p_k, Σ p_k² and the number of labels of
    every class, and Σ p_y; all rows together what proper scores need. Nothing in it names a row.
    All sums are of whole numbers (p in multiples of 2⁻³⁰), so that batches, their order and the
    number of processes change no bit. Tallies of the same cells add up by ``+``.

    Attributes
    ----------
    lens : Lens
        What was looked at; it leaves K > 2 classes.
    cells : SimplexTree
        The partition; pass it as ``cells=`` to tally more rows.
    n_classes : int
        Number of classes before the lens.
    classes : tuple of str, optional
        Their names.
    key : ndarray of shape (C,), int64
        The occupied leaves.
    count, chosen : ndarray of shape (C,), int64
        Their rows, and Σ p_y in multiples of 2⁻³⁰.
    sums : ndarray of shape (C, K, 3), int64
        Σ p_k and Σ p_k² in multiples of 2⁻³⁰, and the numbers of labels.
    totals : ndarray of shape (6, 2), int64
        The sums over all rows, in multiples of 2⁻²⁰ and of 2⁻⁶³.
    refuted : int
        Labels that had probability 0.
    notes : tuple of str
        What was done to the rows on the way in; not part of the value.

    Notes
    -----
    O(n K), some 20 ns for each number, a logarithm among it; 3 K numbers for each leaf.

    Examples
    --------
    >>> import caltest as ct
    >>> digits = ct.examples.digits("overfit")
    >>> first = ct.VectorTally.of(digits.take(slice(0, 400)))
    >>> both = first + ct.VectorTally.of(digits.take(slice(400, 900)), cells=first.cells)
    >>> both.n, both == ct.VectorTally.of(digits, cells=first.cells)
    (900, True)
    >>> ct.calibration_test(both, None, ct.ECE(ct.VarianceTree(30)), rng=1).pvalue < 0.01
    True
    """

    lens: Lens
    cells: SimplexTree
    n_classes: int
    classes: tuple[str, ...] | None
    key: IntArray = field(repr=False)
    count: IntArray = field(repr=False)
    chosen: IntArray = field(repr=False)
    sums: IntArray = field(repr=False)
    totals: IntArray = field(repr=False)
    refuted: int = field(repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        probs: Any,
        labels: Any = None,
        lens: Lens | None = None,
        cells: SimplexTree | None = None,
        **facts: Unpack[Facts],
    ) -> Self:
        """Tally rows.

        Parameters
        ----------
        probs, labels, **facts
            As in :meth:`Predictions.of`; ``labels`` is left out for a :class:`Predictions`.
            Weights, clusters and subgroups are refused.
        lens : Canonical, TopK or Partition, default Canonical()
            What is looked at.
        cells : SimplexTree, optional
            The leaves; by default a tree that is fitted to these predictions.

        Raises
        ------
        StatisticError
            When the lens leaves two classes or is a function of yours, for cells of another number
            of classes, or for facts of rows that sums cannot hold.
        """
        data, through = rows_of(lens or Canonical(), probs, labels, facts)
        induced = through(data)
        if data.weights is not None:
            raise StatisticError("a tally of whole vectors keeps no weights yet: pass the rows")
        if induced.n_classes == 2:
            raise StatisticError(f"{through!r} leaves two classes: take a Tally")
        seen = np.ascontiguousarray(induced.probs)
        if not isinstance(cells, (SimplexTree, type(None))):
            raise StatisticError(f"cells is {cells!r}: pass the cells of another tally")
        tree = SimplexTree.fit(seen) if cells is None else cells
        leaf, shape = tree(seen), (tree.n_leaves, tree.n_classes, len(SUMS))
        rows = np.zeros((shape[0], 2), dtype=np.int64)
        sums, totals = np.zeros(shape, np.int64), np.zeros((len(TOTALS), 2), np.int64)
        refuted = 0
        for first in range(0, len(seen), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            refuted += _add_up(seen[part], induced.labels[part], leaf[part], rows, sums, totals)
            totals = carried(totals)
        (key,) = np.nonzero(rows[:, 0])
        count, chosen = rows[key].T.copy()
        known = (through, tree, data.n_classes, data.classes, key)
        return cls(*known, count, chosen, sums[key], totals, refuted, data.notes)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.count.sum())

    @property
    def weights(self) -> None:
        """None: all rows count alike."""

    @property
    def effective_n(self) -> float:
        """The number of rows."""
        return float(self.n)

    @property
    def _question(self) -> dict[str, Any]:
        return {
            "lenses": self.lens, "classes": (self.n_classes, self.classes), "cells": self.cells
        }  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VectorTally):
            return NotImplemented
        held = ("key", "count", "chosen", "sums", "totals", "refuted")
        same = (np.array_equal(getattr(self, name), getattr(other, name)) for name in held)
        return self._question == other._question and all(same)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: VectorTally) -> VectorTally:
        """Return the tally of the rows of both.

        Raises
        ------
        StatisticError
            When lenses, classes or cells differ.
        """
        if not isinstance(other, VectorTally):
            return NotImplemented
        for name, own in self._question.items():
            if own != other._question[name]:
                said = f"{name_of(own)} and {name_of(other._question[name])}"
                if name == "cells":
                    said = "tally all rows with the cells of the first, cells=first.cells"
                raise StatisticError(f"tallies of different {name} do not add up: {said}")
        if self.n + other.n > MOST_ROWS:
            raise StatisticError(f"a tally holds at most {MOST_ROWS} rows")
        key, where = np.unique(np.concatenate([self.key, other.key]), return_inverse=True)
        made: dict[str, Any] = {"key": key, "notes": (*self.notes, *other.notes)}
        made["notes"] = tuple(dict.fromkeys(made["notes"]))
        for name in ("count", "chosen", "sums"):
            parts = getattr(self, name), getattr(other, name)
            made[name] = np.zeros((key.size, *parts[0].shape[1:]), dtype=np.int64)
            np.add.at(made[name], where, np.concatenate(parts))
        totals, refuted = carried(self.totals + other.totals), self.refuted + other.refuted
        return replace(self, totals=totals, refuted=refuted, **made)

    def through(self, lens: LensLike | None) -> VectorTally:
        """Return the tally itself; StatisticError for another lens."""
        if lens is None or (isinstance(lens, Lens) and self.named(lens) == self.named(self.lens)):
            return self
        raise StatisticError(
            f"this is a tally of {self.lens!r}, which cannot be looked at through "
            f"{name_of(lens)}: tally the rows with that lens, too"
        )

    def problem(self) -> Any:
        """Return what stands where statistics have their predictions."""
        from caltest.tally.leaves import Leaves

        return Leaves.of(self)

    def to_json(self) -> str:
        """Return the tally as JSON, numbers exactly as they are."""
        lens = {"name": type(self.lens).__name__, **asdict(self.lens)}  # type: ignore[call-overload]
        held = ("key", "count", "chosen", "sums", "totals")
        return json.dumps({
            "caltest vector tally": VERSION, "lens": lens, "cells": self.cells.described(),
            "n": self.n, "n_classes": self.n_classes, "classes": self.classes,
            "refuted": self.refuted, "notes": self.notes,
            **{name: getattr(self, name).tolist() for name in held},
        })  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild from :meth:`to_json`; InvalidPredictionsError for anything else."""
        try:
            content = json.loads(text)
            form, named = content["caltest vector tally"], dict(content["lens"])
            held = ("key", "count", "chosen", "sums", "totals")
            whole: dict[str, Any] = {
                name: np.asarray(content[name], dtype=np.int64) for name in held
            }
            tree = SimplexTree.of_description(content["cells"])
            lens, classes = LENSES[named.pop("name")](**named), content["classes"]
            whole |= {name: content[name] for name in ("n_classes", "refuted")}
            whole["classes"] = None if classes is None else tuple(classes)
            made = cls(lens=lens, cells=tree, notes=tuple(content["notes"]), **whole)
            fits = form == VERSION and made.n == content["n"] and made._sound
        except InvalidPredictionsError:
            raise
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise InvalidPredictionsError(f"this is not a vector tally: {error}") from None
        if not fits:
            raise InvalidPredictionsError("this vector tally is damaged, or of a form not known")
        return made

    @property
    def _sound(self) -> bool:
        """Whether the parts fit each other."""
        rows, inside = self.key.shape, (np.diff(self.key, prepend=-1) > 0).all()
        shapes = self.count.shape == self.chosen.shape == rows and self.sums.shape == (
            *rows, self.cells.n_classes, len(SUMS)
        )  # fmt: skip
        return bool(
            shapes and inside and (self.key < self.cells.n_leaves).all()
            and np.array_equal(self.sums[..., 2].sum(axis=1), self.count)
            and self.totals.shape == (len(TOTALS), 2)
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"VectorTally(n={self.n}, {self.lens!r}, {len(self.key)} leaves)"


@kernel
def _add_up(  # type: ignore[no-untyped-def]
    probs, labels, leaf, rows_out, sums_out, totals_out
):
    # O(n K), one pass. All sums are of whole numbers: their order changes nothing.
    values, refuted = np.zeros(6), 0
    for i in range(probs.shape[0]):
        own, y, chosen = sums_out[leaf[i]], labels[i], probs[i, labels[i]]
        first = second = squares = cubes = 0.0
        for k in range(probs.shape[1]):
            p = probs[i, k]
            if p > 0.0:
                own[k, 0] += int(np.rint(p * UNIT))
                own[k, 1] += int(np.rint(p * p * UNIT))
                lost = -np.log(p)
                first += p * lost
                second += p * lost * lost
                squares += p * p
                cubes += p * p * p
        own[y, 2] += 1
        rows_out[leaf[i], 0] += 1
        rows_out[leaf[i], 1] += int(np.rint(chosen * UNIT))
        refuted += chosen == 0.0
        values[0] = -np.log(chosen) if chosen > 0.0 else 0.0
        values[1], values[2] = first, second - first * first
        values[3], values[4], values[5] = squares - chosen, squares, cubes - squares * squares
        for k in range(values.size):
            scaled = values[k] * HIGH
            high = np.floor(scaled)
            totals_out[k, 0] += int(high)
            totals_out[k, 1] += int((scaled - high) * 2.0**LOW)
    return refuted
