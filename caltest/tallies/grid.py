"""Micro-cells of [0, 1], the pass over rows, the base class of tallies, and their stored form.

:class:`Grid` numbers the cells, :func:`add_up` sums rows over them, :class:`AnyTally` is the base.
:func:`tally_json` and :func:`fields_of` are its JSON; a :class:`RowSample` is kept beside the sums;
:class:`Counted` reads tables of counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._base import BoolArray, FloatArray, IntArray
from caltest._base.arrays import AnyArray, whole
from caltest._base.saving import sealed, unsealed
from caltest._base.written import Fields, name_of, several
from caltest.data import NamedClasses, Predictions
from caltest.data.binning import EDGE_TOLERANCE
from caltest.data.labels import class_names
from caltest.data.lenses import Canonical, Lens, LensLike, OneVsRest, Partition, TopK
from caltest.data.numbers import as_numbers
from caltest.errors import InvalidPredictionsError, StatisticError, nth
from caltest.nulls.lanes import FIRST_FACTOR, GAMMA, SECOND_FACTOR, inlined, lane_kernel
from caltest.read.grade_tables import Grades, count_table, read_columns, read_grades, whole_numbers

#: Cells between 0 and 1, unless others are asked for: 10, 12, 15, 16, 20, 25, 30, 32, 50, 60, 64,
#: 75 and 100 bins of equal width are made of them.
GRID_CELLS = 4800


#: Rows of one tally, so that no sum overflows.
ROWS_A_TALLY = 2**33 - 1


#: Different weights that are kept apart.
MOST_WEIGHTS = 1024


#: The columns of sums: rows, Σt, Σt², Σt³, Σt⁴ with t in [−1, 1] the position; events, Σ y t; what
#: rounding has left of Σt.
CELL_SUMS = ("n", "t1", "t2", "t3", "t4", "events", "events_t", "t1_rest")


#: The totals over rows: with r = y − p, v = p (1 − p) and z = logit p, where p is cut off at 1e-12
#: for the first four, Σ r z, Σ v z of z < 0 and of z > 0, Σ v z², Σ r z, Σ v z², the log score and
#: its promise.
TOTALS = ("cut_rz", "cut_vz_low", "cut_vz_high", "cut_vzz", "rz", "vzz", "log_score", "entropy")


@dataclass(frozen=True)
class Grid:
    """Fine cells of [0, 1] over which a tally sums: their numbers and places.

    ``size`` = G cells have equal width h = 1/G, by default 4800. Each inner edge j / G is a cell of
    its own, for values within 1e-12 of it, so that bins closed on either side consist of whole
    cells. The first and the last cell are cut at h/2, h/4, …, h/2⁴⁷; exact 0 and 1 are cells of
    their own. Numbers j and ``last`` − j are mirror images.
    """

    size: int = GRID_CELLS

    def __post_init__(self) -> None:
        whole("grid", self.size, least=2, most=10**6)

    @property
    def last(self) -> int:
        """Number of the cell of exactly 1 on this grid; exactly 0 has cell 0."""
        return 2 * OCTAVES + 2 * self.size - 2

    @cached_property
    def places(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(centre, half width, position) of the cells up to the middle of [0, 1], arrays (m,).

        Positions are in units of 1/G, for the G cells of equal width of this grid. The position of
        an edge is a whole number; other cells lie between whole numbers.
        """
        h, inner = 1.0 / self.size, np.arange(1, self.size)
        upper = h * 2.0 ** -np.arange(OCTAVES - 1.0, -1.0, -1.0)
        centre, half = 0.75 * upper, 0.25 * upper
        centre[0] = half[0] = 0.5 * upper[0]
        between = np.column_stack([inner * h, (inner + 0.5) * h]).ravel()
        between[::2] = inner / self.size
        widths = np.tile([EDGE_TOLERANCE, 0.5 * h], inner.size)
        position = np.column_stack([inner, inner + 0.5]).ravel()
        size = self.last // 2 + 1
        return (
            np.concatenate([[0.0], centre, between])[:size],
            np.concatenate([[0.0], half, widths])[:size],
            np.concatenate([[0.0], np.full(OCTAVES, 0.5), position])[:size],
        )

    def of(self, key: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return (centre, 1 − centre, half width, position) of the cells with numbers ``key`` (C,).

        All four arrays have shape (C,); positions are in units of 1/G, for the G cells of equal
        width of this grid, and whole numbers for edges.
        """
        centre, half, position = self.places
        low = np.minimum(key, self.last - key)
        upper, near = key > low, centre[low]
        far = 1.0 - near
        place = np.where(upper, self.size - position[low], position[low])
        return np.where(upper, far, near), np.where(upper, near, far), half[low], place

    def sums(self, probs: FloatArray, events: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return (cells (C,), sums (C, 8), totals (8, 2)) of rows over this grid, integers; O(n).

        ``probs`` (n, 2) are probabilities of event and non-event, ``events`` (n,) the outcomes y,
        booleans. The first array has the numbers of the C occupied cells. The second has their
        sums: rows, Σt, Σt², Σt³, Σt⁴, events, Σyt and the rounding remainder of Σt, with t in [−1,
        1] the position in the cell. The third has the sums over all rows that ``TOTALS`` names,
        such as the log score, each as two whole numbers, multiples of 2⁻²⁰ and of 2⁻⁶³.
        """
        by_outcome, totals = add_up(probs[:, 0], probs[:, 1], events, self.size)
        room = by_outcome.sum(axis=1)
        (key,) = np.nonzero(room[:, 0])
        sums = np.column_stack([room[key, :5], by_outcome[key, 1, :2], room[key, 5]])
        low, high, entropy, cut_vzz, cut_rz, vzz, rz = totals
        ordered = [cut_rz, low, high, cut_vzz, rz, vzz, entropy - rz, entropy]
        return key, sums, carried(np.array(ordered))


def mean_position(sums: IntArray) -> FloatArray:
    """Return the mean position of the rows within each of C cells, from −1 to 1, shape (C,).

    ``sums`` (C, 8) are the integer sums of the cells: rows, Σt, …, Σt⁴, events, Σyt and the
    rounding remainder of Σt, with t the position of a row.
    """
    return np.asarray((sums[:, 1] / POSITIONS + sums[:, 7] / FINE) / sums[:, 0])


def total_of(totals: IntArray, name: str) -> FloatArray:
    """Return the total called ``name`` over the rows of each distinct weight, floats (W,).

    ``name`` is one of ``TOTALS``, such as "log_score", the sum of log scores, "entropy", its
    expectation, or "vzz", Σ p (1 − p) z² with log-odds z. ``totals`` (W, 8, 2) hold each total as
    two whole numbers, multiples of 2⁻²⁰ and of 2⁻⁶³, for W weights.
    """
    high, low = totals[:, TOTALS.index(name)].T
    return high / HIGH + low / (HIGH * 2.0**LOW)


def carried(totals: IntArray) -> IntArray:
    """Return totals (…, 2) with the second whole number carried into [0, 2⁴³), same shape.

    Each total is a pair of whole numbers (high, low) that stands for high · 2⁻²⁰ + low · 2⁻⁶³; the
    value of the pair stays as it is.
    """
    high = totals[..., 0] + (totals[..., 1] >> LOW)
    return np.stack([high, totals[..., 1] & ((1 << LOW) - 1)], axis=-1)


def turned_over(sums: IntArray) -> IntArray:
    """Return the sums (C, 8) of C cells for the complementary event, same shape.

    ``sums`` are rows, Σt, …, Σt⁴, events, Σyt and the rounding remainder of Σt. The position t of a
    row in its cell changes its sign, and its outcome y becomes 1 − y.
    """
    n, t1, t2, t3, t4, events, events_t, rest = sums.T
    return np.column_stack([n, -t1, t2, -t3, t4, n - events, events_t - t1, -rest])


# ------------------------------------------------------------------------------
# One pass over rows: the cell of each, and its addends of the sums.


#: The first and the last cell are cut into octaves, so that the smallest chances keep their digits.
OCTAVES = 48


#: Positions within a cell are multiples of 2⁻³⁰ of half its width, so that their sums are exact.
POSITIONS = 2.0**30


#: What is left of a position is a multiple of 2⁻⁵²: their sums say where the mean is.
FINE = 2.0**52


#: Where logits are cut off, as for Cox's tests, and the logit there.
LOGIT_CLIP = 1e-12


LOGIT_CUT = -27.631021115927547


#: Below this 1 − p loses digits, and the other predictions are taken, as lenses do.
SURE_FROM = 1e-6


#: Rows whose sums cannot overflow, and rows that are computed side by side.
ROWS_AT_ONCE, ABREAST = 2**19, 256


#: Where buffers of so many numbers begin: of p and 1 − p the smaller and the larger, whether the
#: rarer of both outcomes occurred, whether that is not the event, x in widths of the grid, the
#: place of the row's sums, and what it adds to them and to totals; logarithms and exponents.
X, REST, RARE, UPPER, Y, PLACE, LEFT, T1, T2, T3, T4 = (k * ABREAST for k in range(11))


PASS_TOTALS, LOGS, EXPONENTS, OCTAVE, POSITION, REMAINDER, BUFFERS = (
    ABREAST * 11, ABREAST * 18, ABREAST * 20, ABREAST * 22, ABREAST * 23, ABREAST * 24, 25
)  # fmt: skip


#: Totals are held in two whole numbers, of multiples of 2⁻²⁰ and of 2⁻⁶³.
HIGH, LOW = 2.0**20, 43


#: The rows and what is left of their positions share a column: 2⁴² n + rest.
PACKED_BITS = 42


# Adding 1.5 · 2⁵² to a number rounds it to a whole one, which is then the difference of the bits;
# adding 1.5 · 2³² or 1.5 · 2⁻¹¹ does so with multiples of 2⁻²⁰ and of 2⁻⁶³.
WHOLE, SHIFT_COARSE, SHIFT_FINE, UNITY, ROOT = (
    1.5 * 2.0**52,
    1.5 * 2.0**32,
    1.5 * 2.0**-11,
    1.0,
    np.sqrt(0.5),
)


WHOLE_BITS, COARSE_BITS, SMALL_BITS, ONE_BITS, ROOT_BITS = (
    int(np.float64(x).view(np.int64)) for x in (WHOLE, SHIFT_COARSE, SHIFT_FINE, UNITY, ROOT)
)


FRACTION = 2**52 - 1


#: Logarithms are taken of 2⁵⁴ x, so that the smallest numbers have all their bits.
LOG_SCALE = 54


LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def add_up(
    p: FloatArray, rest: FloatArray, events: BoolArray, size: int
) -> tuple[IntArray, IntArray]:
    """Return (sums, totals) of rows: sums by cell and outcome, (cells, 2, 6), and totals, (7, 2).

    ``p`` and ``rest`` = 1 − p are predictions and ``events`` outcomes, (n,) each; ``size`` is the
    number of cells of equal width of the grid. Index 1 of the second axis has the rows with the
    event. With t in [−1, 1] the position of a prediction in its cell, the sums are n, Σt, …, Σt⁴
    (powers in multiples of 2⁻³⁰) and the rounding remainder of Σt (of 2⁻⁵²). With v = p (1 − p), z
    the log-odds and r the residual, the totals, each a pair of multiples of 2⁻²⁰ and of 2⁻⁶³, are Σ
    v z where p < ½ and where p > ½, the entropy, Σ v z², Σ r z, and the last two again for log-odds
    that are not cut off. All are int64.
    """
    cells = 2 * OCTAVES + 2 * size - 1
    sums, totals = np.zeros((2 * cells, 6), dtype=np.int64), np.zeros((7, 2), dtype=np.int64)
    room, lanes = np.zeros((2 * cells, 5), dtype=np.int64), np.empty(BUFFERS * ABREAST)
    for first in range(0, p.size, ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        _add_up(p[part], rest[part], events[part], size, lanes, room, totals)
        totals[:, 0] += totals[:, 1] >> LOW
        totals[:, 1] &= (1 << LOW) - 1
        (occupied,) = np.nonzero(room[:, 0])
        shared, others = np.split(room[occupied], [1], axis=1)
        n = (shared + (1 << (PACKED_BITS - 1))) >> PACKED_BITS
        sums[occupied] += np.hstack([n, others, shared - (n << PACKED_BITS)])
        room[occupied] = 0
    return sums.reshape(cells, 2, 6), totals


@lane_kernel
def _add_up(p, rest, events, size, lanes, sums_out, totals_out):  # type: ignore[no-untyped-def]
    # O(n), one pass. All sums are of whole numbers: their order changes nothing.
    bits = lanes.view(np.int64)
    for first in range(0, p.size, ABREAST):
        m = min(ABREAST, p.size - first)
        for i in range(m):
            lanes[X + i], lanes[REST + i] = p[first + i], rest[first + i]
            lanes[RARE + i] = events[first + i]
        for i in range(m, ABREAST):
            lanes[X + i], lanes[REST + i], lanes[RARE + i] = 0.0, 1.0, 0.0  # adds 0 to totals
        for i in range(ABREAST):
            x, other, event = lanes[X + i], lanes[REST + i], lanes[RARE + i]
            other = 1.0 - x if 1.0 - x >= SURE_FROM else other
            upper = x > 0.5
            lanes[X + i] = other if upper else x
            lanes[REST + i] = x if upper else other
            lanes[RARE + i] = 1.0 - event if upper else event
            lanes[UPPER + i] = 1.0 if upper else 0.0
        _place_in_grid(lanes, bits, size)
        _logarithms(lanes, bits)
        _total(lanes, bits, totals_out)
        for i in range(m):
            row = sums_out[np.uint64(lanes[PLACE + i])]
            row[0] += bits[LEFT + i] - (WHOLE_BITS - (1 << PACKED_BITS))
            row[1] += bits[T1 + i] - WHOLE_BITS
            row[2] += bits[T2 + i] - WHOLE_BITS
            row[3] += bits[T3 + i] - WHOLE_BITS
            row[4] += bits[T4 + i] - WHOLE_BITS


@inlined
def _place_in_grid(lanes, bits, size):  # type: ignore[no-untyped-def]
    last = 2.0 * (OCTAVES + size - 1)
    for i in range(ABREAST):
        lanes[Y + i] = lanes[X + i] * size
    for i in range(ABREAST):
        bits[OCTAVE + i] = (bits[Y + i] >> 52) + WHOLE_BITS
        bits[POSITION + i] = (bits[Y + i] & FRACTION) + ONE_BITS
    for i in range(ABREAST):
        x, y = lanes[X + i], lanes[Y + i]
        j, cell = np.rint(y), np.floor(y)
        off = x - j / size
        octave = lanes[OCTAVE + i] - (WHOLE + 1022.0 - OCTAVES)
        t = 2.0 * lanes[POSITION + i] - 3.0
        t = t if octave > 1.0 else y * 2.0**OCTAVES - 1.0
        key = max(octave, 1.0)
        key, t = (OCTAVES + 2.0 * cell, 2.0 * (y - cell) - 1.0) if y >= 1.0 else (key, t)
        edge = (j > 0.0) & (abs(off) <= EDGE_TOLERANCE)
        key, t = (OCTAVES + 2.0 * j - 1.0, off * (1.0 / EDGE_TOLERANCE)) if edge else (key, t)
        key, t = (key, t) if x > 0.0 else (0.0, 0.0)
        upper, rare = lanes[UPPER + i] > 0.0, lanes[RARE + i]
        lanes[PLACE + i] = 2.0 * (last - key) + 1.0 - rare if upper else 2.0 * key + rare
        t = -t if upper else t
        whole = t * POSITIONS + WHOLE
        lanes[T1 + i] = whole
        rounded = (whole - WHOLE) / POSITIONS
        square = rounded * rounded
        lanes[LEFT + i] = (t - rounded) * FINE + WHOLE
        lanes[T2 + i] = square * POSITIONS + WHOLE
        lanes[T3 + i] = square * rounded * POSITIONS + WHOLE
        lanes[T4 + i] = square * square * POSITIONS + WHOLE


@inlined
def _logarithms(lanes, bits):  # type: ignore[no-untyped-def]
    # With m = 1 + f in [√½, √2): log 2ᵏ m = k log 2 + 2 artanh s, s = f / (2 + f), by the
    # polynomial of fdlibm, to one unit in the last place; every operation as it is written.
    for i in range(ABREAST):
        x = lanes[X + i]
        lanes[LOGS + i] = (x if x > 0.0 else 1.0) * 2.0**LOG_SCALE
        lanes[LOGS + ABREAST + i] = lanes[REST + i] * 2.0**LOG_SCALE
    for i in range(2 * ABREAST):
        above = bits[LOGS + i] - ROOT_BITS
        bits[EXPONENTS + i] = (above >> 52) + WHOLE_BITS
        bits[LOGS + i] = (above & FRACTION) + ROOT_BITS
    for i in range(2 * ABREAST):
        k, f = lanes[EXPONENTS + i] - (WHOLE + LOG_SCALE), lanes[LOGS + i] - 1.0
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        even = 3.999999999940941908e-01 + w * (
            2.222219843214978396e-01 + w * 1.531383769920937332e-01
        )
        odd = 2.857142874366239149e-01 + w * (
            1.818357216161805012e-01 + w * 1.479819860511658591e-01
        )
        series = w * even + z * (6.666666666666735130e-01 + w * odd)
        half = 0.5 * f * f
        lanes[LOGS + i] = k * LN2_HIGH - ((half - (s * (half + series) + k * LN2_LOW)) - f)


@inlined
def _total(lanes, bits, totals_out):  # type: ignore[no-untyped-def]
    for i in range(ABREAST):
        x, rest, upper = lanes[X + i], lanes[REST + i], lanes[UPPER + i]
        log, log_rest = lanes[LOGS + i], lanes[LOGS + ABREAST + i]
        z, v, r = log - log_rest, x * rest, rest if lanes[RARE + i] > 0.0 else -x
        cut = LOGIT_CUT if x < LOGIT_CLIP else z
        lanes[PASS_TOTALS + i] = 0.0 if upper > 0.0 else v * cut
        lanes[PASS_TOTALS + ABREAST + i] = -v * cut if upper > 0.0 else 0.0
        lanes[PASS_TOTALS + 2 * ABREAST + i] = -x * log - rest * log_rest
        lanes[PASS_TOTALS + 3 * ABREAST + i] = v * cut * cut
        lanes[PASS_TOTALS + 4 * ABREAST + i] = r * cut
        lanes[PASS_TOTALS + 5 * ABREAST + i] = v * z * z
        lanes[PASS_TOTALS + 6 * ABREAST + i] = r * z
    for k in range(7):
        for i in range(ABREAST):
            value = lanes[PASS_TOTALS + k * ABREAST + i]
            high = value + SHIFT_COARSE
            lanes[PASS_TOTALS + k * ABREAST + i] = high
            lanes[REMAINDER + i] = (value - (high - SHIFT_COARSE)) + SHIFT_FINE
        for i in range(ABREAST):
            totals_out[k, 0] += bits[PASS_TOTALS + k * ABREAST + i] - COARSE_BITS
            totals_out[k, 1] += bits[REMAINDER + i] - SMALL_BITS


# ------------------------------------------------------------------------------
# What all tallies share: sums of rows that are not kept, which add up.


class _Missing:
    """Descriptor of an attribute that only rows have; reading it raises InvalidPredictionsError.

    On the class it returns itself.
    """

    def __get__(self, tally: AnyTally | None, kind: type) -> Any:
        return self if tally is None else tally.__array__()


class AnyTally(NamedClasses, ABC):
    """Base class of tallies: sums over fine bins that stand for rows which are not kept.

    Each kind is a dataclass that has the attributes of :class:`Predictions` which the functions of
    the package read; design information of rows, such as clusters, is None. They see one
    ``through`` a lens, which says which probabilities are assessed. ``rows`` is a sample of the
    rows, None if none was kept, and ``outcome`` the name of the outcome, "" if unknown. Tallies of
    different rows are added with ``+``.
    """

    if TYPE_CHECKING:  # a field of some kinds, a property of others
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

        @property
        def lens(self) -> Lens: ...

        @property
        def notes(self) -> tuple[str, ...]: ...

    probs = labels = _Missing()
    has_rows = False
    drawn_together: ClassVar[bool] = True
    #: A sample of the rows, for what sums leave open.
    rows: Predictions | None = None
    #: What sums do not know of.
    clusters = n_clusters = crossed = folds = horizon = by = features = followup = None
    ordered = multilabel = induced = False
    outcome: str = ""
    copies = 0

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise InvalidPredictionsError(
            f"a {type(self).__name__} has no rows, and rows are needed here: pass their "
            "predictions. Verbs that answer from sums take it alone, in place of probs and labels"
        )

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows with weight above 0."""

    @property
    @abstractmethod
    def weights(self) -> FloatArray | None:
        """Distinct weights of the rows, shape (W,), increasing; None if all rows weigh the same."""

    @property
    @abstractmethod
    def effective_n(self) -> float:
        """Effective number of rows, (Σ w)² / Σ w² over rows with weights w."""

    @property
    @abstractmethod
    def impossible(self) -> IntArray:
        """Outcomes of probability 0 in this tally, an integer for each.

        An entry is the index of the sampled row, or 0 where no rows are kept; the length is the
        number of such outcomes.
        """

    @property
    def lenses(self) -> tuple[Lens, ...]:
        """Lenses for which sums were kept: choices of assessed probabilities, as ``TopK(1)``."""
        return (self.lens,)

    @abstractmethod
    def through(self, lens: LensLike | None) -> AnyTally:
        """Return this tally seen through a lens; StatisticError where no sums were kept for it.

        ``lens`` says which probabilities are assessed, such as ``TopK(1)``; None is the usual lens.
        """

    def source(self, lens: LensLike | None) -> AnyTally:
        """Return the member tally from which the sums for a lens are derived.

        It is the tally itself if it has no members. ``lens`` says which probabilities are assessed;
        None is the usual lens. A tally of several lenses raises StatisticError where no sums were
        kept for it.
        """
        return self

    def paired(self, other: AnyTally) -> tuple[Predictions, Predictions]:
        """Return the sampled rows that two models share, as Predictions in the same order.

        ``other`` is the tally of the second model. The pair is (rows of this model, rows of the
        other). StatisticError if the tallies keep no rows, or share none.
        """
        raise StatisticError(
            "two tallies do not say which rows go together: paired=False compares models on "
            "different observations; for the same ones compare two Tallies, which keep rows of both"
        )

    @property
    @abstractmethod
    def question(self) -> dict[str, object]:
        """Properties that tallies must share to be added or compared, values by name.

        Names are "lenses", and where they apply "grids" or "numbers of cells", and "classes".
        """

    def refuse_other(self, other: AnyTally, what: str) -> None:
        """Raise StatisticError if ``other`` has another lens, grid, or other classes than this.

        ``what`` ends the sentence "tallies of different … ", such as "do not add up".
        """
        for name, value in self.question.items():
            if value != other.question.get(name):
                raise StatisticError(
                    f"tallies of different {name} {what}: {name_of(value)} and "
                    f"{name_of(other.question.get(name))}"
                )

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    def __radd__(self, other: object) -> Self:
        return self if other == 0 else NotImplemented  # which sum() begins with

    def named(self, lens: Lens) -> tuple[object, ...]:
        """Return a lens as a tuple that compares equal for equal lenses, classes by number.

        ``lens`` is a choice of assessed probabilities. The tuple is ("class", number) for
        ``OneVsRest``, a tuple of sets of numbers for ``Partition``, and ("lens", lens) for others.
        A class may be named in the lens by one of the names that the tally has for its classes.
        """
        if isinstance(lens, OneVsRest):
            return "class", self.class_index(lens.c)
        if isinstance(lens, Partition):
            return tuple(frozenset(map(self.class_index, group)) for group in lens.groups)
        return ("lens", lens)


#: What verbs are asked about: rows, or sums over rows.
RowsOrTally: TypeAlias = Predictions | AnyTally


# ------------------------------------------------------------------------------
# The stored form of a tally: JSON of whole numbers only, checked when it is read.
#
# :func:`tally_json` writes the fields of a tally, and :func:`fields_of` reads them and refuses sums
# that no rows can have.


#: The lenses through which a tally may look, by name.
TALLY_LENSES: dict[str, type[Lens]] = {
    kind.__name__: kind for kind in (OneVsRest, TopK, Partition, Canonical)
}


#: The version of the stored form.
VERSION = 2


#: What the stored form says it is.
FORM = "caltest tally"


def tally_json(tally: Fields, n: int) -> str:
    """Return the fields of a tally of ``n`` rows as JSON text; :func:`fields_of` is the inverse.

    ``tally`` is a dict of the fields of a :class:`Tally` by name ("lens", "grid", "sums" …), with
    arrays of whole numbers.
    """
    lens = {"name": type(tally["lens"]).__name__, **vars(tally["lens"])}
    columns = {"stratum": tally["stratum"], "key": tally["key"]}
    columns |= dict(zip(CELL_SUMS, tally["sums"].T, strict=True))
    content = {
        FORM: VERSION, "lens": lens, "grid": tally["grid"], "n": n,
        "n_classes": tally["n_classes"], "classes": tally["classes"],
        "weights": tally["strata"].tolist(), "totals": tally["totals"].tolist(),
        "notes": tally["notes"],
        "cells": {name: column.tolist() for name, column in columns.items()},
    }  # fmt: skip
    if tally["outcome"]:
        content["outcome"] = tally["outcome"]
    return sealed(content)


def fields_of(content: Any) -> Fields:
    """Return the fields of a tally from parsed JSON, a dict of keyword arguments of :class:`Tally`.

    ``content`` is the parsed text of :func:`tally_json`. InvalidPredictionsError for content that
    is no tally, and for sums that no rows can have.
    """
    try:
        cells = content["cells"]
        if content[FORM] != VERSION:
            raise InvalidPredictionsError(
                f"this tally has the form {content[FORM]}, known is {VERSION}"
            )
        named, classes = dict(content["lens"]), content["classes"]
        whole = {name: _whole_column(name, cells[name]) for name in ("stratum", "key", *CELL_SUMS)}
        totals = np.asarray(content["totals"])
        if totals.dtype != np.int64:
            raise InvalidPredictionsError("this tally is damaged: totals are not whole numbers")
        fields: Fields = {
            "lens": TALLY_LENSES[named.pop("name")](**named),
            "grid": content["grid"],
            "n_classes": content["n_classes"],
            "classes": None if classes is None else tuple(classes),
            "strata": np.asarray(content["weights"], dtype=np.float64),
            "key": whole.pop("key"),
            "stratum": whole.pop("stratum"),
            "sums": np.column_stack([*whole.values()]),
            "totals": totals,
            "notes": tuple(content["notes"]),
            "outcome": str(content.get("outcome", "")),
        }
        _refuse_impossible(fields, content["n"])
    except InvalidPredictionsError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        lacks = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise InvalidPredictionsError(f"this is not a tally of caltest: {lacks}") from None
    unsealed(content, "this tally")
    return fields


def _whole_column(name: str, values: object) -> IntArray:
    """Return a list of whole numbers from parsed JSON as an int64 array (C,).

    ``name`` is the column in messages: InvalidPredictionsError for ``values`` that are no list, and
    for the first one that is not a whole number below 2⁶³ in size.
    """
    if not isinstance(values, list):
        raise InvalidPredictionsError(f"this tally is damaged: {name} is no list")
    for row, value in enumerate(values):
        if type(value) is not int or abs(value) >= 2**63:
            raise InvalidPredictionsError(
                f"this tally is damaged: {name} of cell {row} is {value!r}, not a whole number"
            )
    return np.array(values, dtype=np.int64)


def _refuse_impossible(fields: Fields, n: object) -> None:
    """Raise InvalidPredictionsError for cells or sums of a tally that no rows can have.

    ``fields`` are the fields of a :class:`Tally` by name, of which the message names the wrong one;
    ``n`` is the stated number of rows.
    """
    key, stratum, strata = fields["key"], fields["stratum"], fields["strata"]
    last, size = Grid(fields["grid"]).last, strata.size
    order = stratum * (last + 1) + key
    inside = (key >= 0) & (key <= last) & (stratum >= 0) & (stratum < size)
    rows, t1, t2, t3, t4, events, events_t, rest = fields["sums"].T.astype(np.float64)
    most = rows * POSITIONS * (1 + 1e-9)  # positions are rounded
    checks = {
        "n is below 1": rows < 1,
        "events are below 0": events < 0,
        "events are above n": events > rows,
        "t1 is not of n positions in [-1, 1]": np.abs(t1) > most,
        "t2 is not of n squares in [0, 1]": (t2 < 0) | (t2 > most),
        "t3 is not of n positions in [-1, 1]": np.abs(t3) > most,
        "t4 is not of n squares in [0, 1]": (t4 < 0) | (t4 > most),
        "events_t is not of that many events": np.abs(events_t) > events * POSITIONS * (1 + 1e-9),
        "t1_rest is not of n remainders": np.abs(rest) > rows * (FINE / POSITIONS),
        "the cell is not one of the grid": ~inside,
        "the cell is not after the one before": np.diff(order, prepend=-1) <= 0,
    }
    for words, wrong in checks.items():
        if wrong.any():
            cell = int(np.argmax(wrong))
            raise InvalidPredictionsError(f"this tally is damaged: in cell {cell} {words}")
    found, classes = int(fields["sums"][:, 0].sum()), fields["classes"]
    wrong_weights = not (np.isfinite(strata) & (strata > 0)).all() or (np.diff(strata) <= 0).any()
    for words, is_wrong in {
        f"its sums do not fit its number, {n!r}": type(n) is not int or found != n,
        f"it has more than {ROWS_A_TALLY} rows": rows.sum() > ROWS_A_TALLY,
        "its weights are not finite, above 0 and increasing": not strata.size or wrong_weights,
        "its totals do not fit its weights": fields["totals"].shape != (size, len(TOTALS), 2),
        f"its number of classes is {fields['n_classes']!r}": (
            type(fields["n_classes"]) is not int or fields["n_classes"] < 2
        ),
        "its classes do not fit their number": (
            classes is not None and len(set(classes)) != fields["n_classes"]
        ),
    }.items():
        if is_wrong:
            raise InvalidPredictionsError(f"this tally is damaged: {words}")


# ------------------------------------------------------------------------------
# A uniform sample of rows, kept beside sums to answer the questions that sums leave open.
#
# Rows are sampled by a hash of their content, so that any order and splitting gives the same
# sample; :func:`shared_rows` pairs the samples of two models.


#: Rows of a sample, and numbers in their predictions, at most.
ROWS_SAMPLED_AT_MOST, NUMBERS_SAMPLED = 50_000, 2**23


#: Rows of a part whose labels tell it from others.
ROWS_COMPARED = 1024


#: The largest rank: every row may be in the sample.
UNBOUNDED = np.uint64(2**64 - 1)


UIntArray = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class RowSample:
    """Random sample of at most 50 000 rows, which does not depend on batches.

    It keeps the rows of smallest rank; for many classes at most 2²³ / K of them, K the number of
    classes. The rank of a row is a hash of its number in its file and of the first labels of the
    file, so that every row is equally likely to be chosen. It does not depend on predictions: the
    samples of two models on the same rows have the same rows. ``n`` is the number of rows of
    positive weight from which it was taken, ``rank`` (m,) are the ranks, increasing, ``probs`` (m,
    K) and ``labels`` (m,) the sampled rows, and ``weights`` (m,) is None if all are equal. O(n) for
    the ranks, O(m log m) to add two samples.
    """

    n: int
    rank: UIntArray = field(repr=False)
    probs: FloatArray = field(repr=False)
    labels: IntArray = field(repr=False)
    weights: FloatArray | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        data: Predictions,
        first: int = 0,
        part: np.uint64 | None = None,
        bound: np.uint64 = UNBOUNDED,
    ) -> Self:
        """Return a sample of the rows ``data``; the first has the number ``first`` in its file.

        ``part`` is a hash that identifies the file; None takes a hash of the labels. Rows with
        ranks above ``bound``, the bound of a sample to which this one will be added, are left out,
        and rows of weight 0.
        """
        number = np.arange(first, first + data.n, dtype=np.uint64)
        rank = mixed(number * GAMMA + (part_of(data.labels) if part is None else part))
        below, n = rank <= bound, data.n
        if data.weights is not None:
            n = int((data.weights > 0.0).sum())
            below &= data.weights > 0.0
        (rows,) = np.nonzero(below)
        if rows.size > (most := most_rows(data.n_classes)):
            rows = rows[rank[rows] <= np.partition(rank[rows], most - 1)[most - 1]]
        weights = None if data.weights is None else data.weights[rows]
        return cls(n, rank[rows], data.probs[rows], data.labels[rows], weights)._smallest()

    @property
    def bound(self) -> np.uint64:
        """Largest rank that can still enter this sample of the rows with the smallest ranks.

        It is 2⁶⁴ − 1 until the sample is full.
        """
        full = self.rank.size == most_rows(self.probs.shape[1])
        return np.uint64(self.rank[-1]) if full else UNBOUNDED

    @property
    def remark(self) -> str:
        """Description of this sample for results, such as "a sample of 8192 of 100000 rows".

        It is "" if all rows are in it.
        """
        whole = self.rank.size == self.n
        return "" if whole else f"a sample of {self.rank.size} of {self.n} rows"

    def _smallest(self) -> Self:
        """Return this sample cut to the rows of smallest rank, as many as a sample may keep.

        Equal ranks are ordered by content, so that the order of batches does not matter.
        """
        content = self.labels.astype(np.uint64)
        for column in np.ascontiguousarray(self.probs.T).view(np.uint64):
            content = mixed(content * GAMMA + column)
        order = np.lexsort((content, self.rank))[: most_rows(self.probs.shape[1])]
        weights = None if self.weights is None else self.weights[order]
        columns = self.rank[order], self.probs[order], self.labels[order]
        return type(self)(self.n, *columns, weights)

    def __add__(self, other: RowSample) -> RowSample:
        """Return the sample of both sets of rows, of the smallest ranks; at most 50 000 rows."""
        weights = None
        if not (self.weights is None and other.weights is None):
            each = (np.ones(s.rank.size) if s.weights is None else s.weights for s in (self, other))
            weights = np.concatenate([*each])
        columns = ([vars(s)[name] for s in (self, other)] for name in ("rank", "probs", "labels"))
        rank, probs, labels = map(np.concatenate, columns)
        return RowSample(self.n + other.n, rank, probs, labels, weights)._smallest()

    def described(self) -> dict[str, object]:
        """Return this sample as a dictionary that JSON can hold, exact to the bit.

        Its keys are "n", "n_classes", and "rank", "probs", "labels" and, where there are any,
        "weights" as Base64 text of the bytes.
        """
        columns = {"rank": self.rank, "probs": self.probs, "labels": self.labels}
        columns |= {} if self.weights is None else {"weights": self.weights}
        texts = {name: b64encode(c.tobytes()).decode() for name, c in columns.items()}
        return {"n": self.n, "n_classes": self.probs.shape[1], **texts}

    @classmethod
    def of_description(cls, content: dict[str, Any]) -> Self:
        """Rebuild a sample from the dictionary ``content`` that :meth:`described` returns.

        InvalidPredictionsError for columns that do not fit each other, and for numbers that rows
        cannot have.
        """

        def column(name: str, kind: str) -> AnyArray:
            return np.frombuffer(b64decode(content[name], validate=True), dtype=kind)

        k, n = content["n_classes"], content["n"]
        if type(k) is not int or type(n) is not int or k < 2:
            raise InvalidPredictionsError("the sample of rows in these tallies is damaged")
        rank, labels = column("rank", "<u8"), column("labels", "<i8")
        probs = column("probs", "<f8").reshape(-1, k)
        weights = column("weights", "<f8") if "weights" in content else None
        sizes = {rank.size, labels.size, len(probs), rank.size if weights is None else weights.size}
        fits = len(sizes) == 1 and rank.size <= min(n, most_rows(k))
        sound = fits and bool(
            (rank[1:] >= rank[:-1]).all()
            and ((probs >= 0.0) & (probs <= 1.0)).all()
            and ((labels >= 0) & (labels < k)).all()
            and (weights is None or (np.isfinite(weights) & (weights > 0.0)).all())
        )
        if not sound:
            raise InvalidPredictionsError("the sample of rows in these tallies is damaged")
        return cls(n, rank, probs, labels, weights)


def shared_rows(a: RowSample, b: RowSample) -> tuple[IntArray, IntArray]:
    """Return (i, j), integers (m,) each: indices in ``a`` and in ``b`` of the rows they share.

    ``a`` and ``b`` are the samples that two tallies keep of their rows, for two models.
    StatisticError for samples of other observations: other numbers of rows, other labels, or fewer
    than half in common.
    """
    alone = [np.unique(s.rank, return_counts=True) for s in (a, b)]
    once = [np.isin(s.rank, rank[n == 1]) for s, (rank, n) in zip((a, b), alone, strict=True)]
    places = [np.flatnonzero(which) for which in once]
    shared, i, j = np.intersect1d(a.rank[places[0]], b.rank[places[1]], return_indices=True)
    i, j = places[0][i], places[1][j]
    least = min(a.rank.size, b.rank.size)
    if a.n != b.n or 2 * shared.size < least or (a.labels[i] != b.labels[j]).any():
        raise StatisticError(
            "these tallies are not of the same observations, cut into the same parts: "
            "paired=False compares models on different observations"
        )
    return i, j


def most_rows(n_classes: int) -> int:
    """Return the largest number of rows that a sample keeps for ``n_classes`` classes, K.

    It is 50 000, or 2²³ / K if that is less.
    """
    return min(ROWS_SAMPLED_AT_MOST, max(1, NUMBERS_SAMPLED // n_classes))


def part_of(labels: IntArray) -> np.uint64:
    """Return a hash of the first 1024 of the ``labels`` (n,), which tells files of rows apart."""
    few = labels[:ROWS_COMPARED].astype(np.uint64)
    number = np.arange(1, few.size + 1, dtype=np.uint64)
    return np.uint64(np.bitwise_xor.reduce(mixed(number * GAMMA + few)))


def mixed(z: UIntArray) -> UIntArray:
    """Return 64 pseudo-random bits for each number of ``z``, uint64 of the same shape.

    The mixing function is SplitMix64's (Steele, Lea & Flood 2014).
    """
    z = (z ^ (z >> np.uint64(30))) * FIRST_FACTOR
    z = (z ^ (z >> np.uint64(27))) * SECOND_FACTOR
    return z ^ (z >> np.uint64(31))


# ------------------------------------------------------------------------------
# Tallies of tables of counts: micro-cell sums of a warehouse, and grades or bins.


#: What rows are counted under in place of a cell, and why they cannot be tallied.
REFUSED = {
    -1: "without a probability",
    -2: "with a probability outside [0, 1]",
    -3: "with an outcome that is not 0 or 1",
    -4: "without a weight ≥ 0",
}


#: The columns of the result: whole numbers but for the weight.
SQL_COLUMNS = ("grid", "weight", "key", *CELL_SUMS, *TOTALS, *(f"{name}_rest" for name in TOTALS))


#: Cells of a tally of clusters: bins of 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 24, 30 and 40 fit.
CLUSTER_CELLS = 120


#: What the two classes are called, if anything.
Names = tuple[str, ...] | None


class Counted:
    """Mixin of tallies that can be built from tables of counts, such as grades or query results.

    It adds the class method ``from_table``.
    """

    @classmethod
    def from_table(
        cls, table: object, *, n: str | None = None, events: str | None = None,
        probability: str | None = None, classes: Sequence[object] | None = None,
        grid: int | None = None,
    ) -> Self:  # fmt: skip
        """Tally a table of counts: the result of :func:`tally_sql`, or grades or bins.

        Parameters
        ----------
        table : data frame, mapping of columns, duckdb relation or path
            The result of a query of :func:`tally_sql`; the results of several days may be
            concatenated. Or a row for each grade, which stands for its ``n`` rows with one
            prediction.
        n, events, probability : str, optional
            Columns of grades or expressions over them, as in :func:`grade_tests`.
        classes : sequence of two, optional
            Names of "did not occur" and "occurred".
        grid : int, optional
            Cells of equal width; 4800 for grades, the query's own grid for its result.

        Returns
        -------
        Tally
            Of the event, ``OneVsRest(1)``; the tally of grades equals the tally of their rows.

        Raises
        ------
        InvalidPredictionsError
            For columns that are not there, the first row whose numbers are not counts or no
            probability, and rows that the query could not tally.
        StatisticError
            For 2³³ rows and more, results of different grids or of another one than ``grid``, and
            more than 1024 different weights.

        Notes
        -----
        Linear in the rows of the table; log₂ n passes for grades with up to n rows of a kind.

        Examples
        --------
        >>> import caltest as ct
        >>> grades = {"n": [200, 50], "events": [1, 2], "probability": [0.01, 0.05]}
        >>> ct.Tally.from_table(grades)
        Tally(n=250, OneVsRest(1), 2 cells of 4800)
        """
        names = class_names(classes, 2)
        with count_table(table) as counts:
            if "key" in counts.names and "t4" in counts.names:
                columns = read_columns(counts, SQL_COLUMNS)
                return _of_cells(cls, columns, names, grid)
            grade_columns = {"n": n, "events": events, "probability": probability}
            grades = read_grades(counts, grade_columns)
        return _of_grades(cls, grades, names, GRID_CELLS if grid is None else grid)


def _of_grades(kind: Any, grades: Grades, names: Names, grid: int) -> Any:
    """Return the tally of grades, added up by the binary digits of their counts, highest first.

    ``kind`` is the class of tally to make, ``grades`` has numbers of rows and events and the
    probability of each grade, ``names`` are the names of both classes or None, ``grid`` is the
    number of cells. Every row of a grade has the probability of the grade. StatisticError for 2³³
    rows and more.
    """
    _refuse_more(grades.n)
    times = np.concatenate([grades.events, grades.n - grades.events])
    p, event = np.tile(grades.probability, 2), np.arange(times.size) < grades.n.size

    def once(rows: IntArray) -> Any:
        probs = np.ascontiguousarray(np.column_stack([p, 1.0 - p])[rows])
        key, sums, totals = Grid(grid).sums(probs, event[rows])
        head = (OneVsRest(1), grid, 2, names, np.ones(1))
        return kind(*head, key, np.zeros_like(key), sums, totals[None])

    digits = int(times.max()).bit_length()
    total = once(np.flatnonzero(times >> (digits - 1) & 1))
    for digit in range(digits - 2, -1, -1):
        total = total + total + once(np.flatnonzero(times >> digit & 1))
    return total


def _refuse_more(n: IntArray) -> None:
    if sum(n.tolist()) > ROWS_A_TALLY:
        raise StatisticError(f"a tally holds at most {ROWS_A_TALLY} rows")


def _of_cells(kind: Any, columns: Mapping[str, AnyArray], names: Names, grid: int | None) -> Any:
    """Return the tally of a query's result, or of several results concatenated.

    ``columns`` are the columns of the query's result by name, arrays. ``kind`` is the class of
    tally to make, ``names`` are the names of both classes or None, ``grid`` is the number of cells
    of equal width, None for the grid that the query used. InvalidPredictionsError for rows that the
    query could not tally and for sums that rows cannot have; StatisticError for grids that differ,
    and for too many rows or weights.
    """
    whole = {name: whole_numbers(columns[name], name) for name in SQL_COLUMNS if name != "weight"}
    key, n = whole["key"], whole["n"]
    refusals = [f"{several(int(n[key == code].sum()), 'row')} {why}"
            for code, why in REFUSED.items() if (key == code).any()]  # fmt: skip
    if refusals:
        raise InvalidPredictionsError(
            f"the query found {', '.join(refusals)}: repair them, or query a view without them"
        )
    _refuse_more(n)
    sizes = np.unique(whole["grid"])
    if sizes.size > 1 or grid not in (None, sizes[0]):
        remedy = "one at a time" if grid is None else f"not of {grid}"
        raise StatisticError(f"this table is of grid {', '.join(map(str, sizes))}, {remedy}")
    sums = np.column_stack([whole[name] for name in CELL_SUMS])
    events, t1 = whole["events"], whole["t1"]
    wrong = (n < 1) | (events < 0) | (events > n) | (np.abs(t1) > n * POSITIONS)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidPredictionsError(f"{nth(row)} has sums that {n[row]} rows cannot have")
    strata, stratum = np.unique(as_numbers(columns["weight"], "weight"), return_inverse=True)
    if strata[0] <= 0.0 or strata.size > MOST_WEIGHTS:
        raise StatisticError(
            f"there are {several(strata.size, 'weight')} from {strata[0]:g} on, and a tally keeps "
            f"up to {MOST_WEIGHTS} apart, all above 0: round them in a view"
        )
    last = Grid(int(sizes[0])).last
    if ((key < 0) | (key > last)).any():
        raise InvalidPredictionsError(f"key: there are others than 0 to {last} of grid {sizes[0]}")
    both, where = np.unique(stratum * (last + 1) + key, return_inverse=True)
    merged = np.zeros((both.size, len(CELL_SUMS)), dtype=np.int64)
    np.add.at(merged, where, sums)
    parts = np.stack([[whole[t], whole[f"{t}_rest"]] for t in TOTALS]).transpose(2, 0, 1)
    totals = np.zeros((strata.size, len(TOTALS), 2), dtype=np.int64)
    for start in range(0, n.size, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        np.add.at(totals, stratum[part], parts[part])
        totals = carried(totals)
    of_cell, key = np.divmod(both, last + 1)
    return kind(OneVsRest(1), int(sizes[0]), 2, names, strata, key, of_cell, merged, totals)
