"""Predictions: validated probabilities and labels, the one internal currency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._arrays import BoolArray as BoolArray
from caltest._arrays import FloatArray as FloatArray
from caltest._arrays import IntArray as IntArray
from caltest.errors import InvalidPredictionsError, StatisticError

#: Rows whose sum is further from 1 than this are refused.
SUM_TOLERANCE = 1e-3
#: Rows whose sum is closer to 1 than this are left as they are, so that decimals stay decimals.
SUM_EXACT = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Probabilities of ``K`` classes for ``n`` observations, and what was observed.

    Make one with :meth:`Predictions.of`, which checks everything once; the constructor itself
    trusts its arguments and is meant for lenses.

    Attributes
    ----------
    probs : ndarray of shape (n, K), float64
        Row ``i`` is the predicted distribution of label ``i``: not negative, summing to 1.
    labels : ndarray of shape (n,), int64
        The observed classes, 0 … K−1.
    classes : tuple of str, optional
        The names of the classes, in the order of the columns.
    notes : tuple of str
        What was done to the input on the way in, such as renormalised rows.
    """

    probs: FloatArray
    labels: IntArray
    classes: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("probs", "labels"):  # a statistic that writes into its arguments must fail
            view = getattr(self, name).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def of(
        cls,
        probs: Any,
        labels: Any = None,
        classes: Sequence[Any] | None = None,
        *,
        from_logits: bool = False,
    ) -> Predictions:
        """Check probabilities and labels, and bring them into one form.

        Parameters
        ----------
        probs : array_like of shape (n,), (n, 1) or (n, K)
            One column or a 1-D array is the probability of label 1 of a binary problem; it
            becomes the two columns (1 − p, p). Anything NumPy can read is welcome: lists, pandas,
            polars, torch tensors on the CPU, float16 to float64. Rows that sum to 1 within 1e-3
            are divided by their sum, which is noted; sums within 1e-12 are left alone.
            A :class:`Predictions` is returned as it is when ``labels`` is left out.
        labels : array_like of shape (n,), (n, 1) or (n, K)
            Integers 0 … K−1, booleans, one-hot rows, or the names given in ``classes``.
        classes : sequence, optional
            The label values (strings or integers) in the order of the columns of ``probs``.
        from_logits : bool, default False
            Apply the softmax (for one column: the logistic function) to ``probs`` first.

        Returns
        -------
        Predictions

        Raises
        ------
        InvalidPredictionsError
            For anything that is not a probability forecast with its outcomes. The message names
            the first offending row (counted from 0), its value, and what to do.

        Notes
        -----
        O(n K) time. The caller's array is used as it is when it is float64 and needs nothing done.

        Examples
        --------
        >>> Predictions.of([0.8, 0.3], [1, 0])
        Predictions(n=2, K=2)
        >>> Predictions.of([[0.7, 0.2, 0.1]], ["cat"], classes=["cat", "dog", "owl"]).labels
        array([0])
        """
        if labels is None:
            if isinstance(probs, Predictions):
                return probs
            raise InvalidPredictionsError("labels are missing: pass probs and labels")
        _refuse_misaligned(probs, labels)
        raw_probs, raw_labels = _as_array(probs, "probs"), _as_array(labels, "labels")
        _refuse_swapped(raw_probs, raw_labels)
        rows, notes = _as_probabilities(raw_probs, from_logits)
        names = _class_names(classes, rows.shape[1])
        if len(raw_labels) != len(rows):
            raise InvalidPredictionsError(
                f"probs has {len(rows)} rows but labels has {len(raw_labels)}; "
                "they must describe the same observations in the same order"
            )
        indices = _as_labels(raw_labels, rows.shape[1], classes)
        return cls(rows, indices, names, notes)

    @property
    def n(self) -> int:
        """Number of observations."""
        return self.probs.shape[0]

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return self.probs.shape[1]

    @property
    def impossible(self) -> IntArray:
        """Rows whose observed label had predicted probability exactly 0.

        One such row refutes calibration by itself.
        """
        return np.flatnonzero(self.probs[np.arange(self.n), self.labels] == 0.0)

    def class_index(self, c: int | str) -> int:
        """Return the number of a class given by its number or its name."""
        names = self.classes or ()
        if isinstance(c, str):
            if c in names:
                return names.index(c)
            known = ", ".join(names) or "no names are known"
            raise StatisticError(f"there is no class named {c!r} ({known})")
        if not 0 <= c < self.n_classes:
            raise StatisticError(
                f"there is no class {c}, classes run from 0 to {self.n_classes - 1}"
            )
        return int(c)

    def class_name(self, index: int) -> str:
        """Return the name of a class, or its number when there are no names."""
        return self.classes[index] if self.classes else str(index)

    def __repr__(self) -> str:
        return f"Predictions(n={self.n}, K={self.n_classes})"


def _refuse_misaligned(probs: Any, labels: Any) -> None:
    a, b = getattr(probs, "index", None), getattr(labels, "index", None)
    if a is None or b is None or not (hasattr(a, "equals") and hasattr(b, "equals")):
        return
    if len(a) == len(b) and not a.equals(b) and a.sort_values().equals(b.sort_values()):
        raise InvalidPredictionsError(
            "probs and labels have the same index in different orders: align them first, for "
            "instance with labels.loc[probs.index]"
        )


def _as_array(values: Any, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise InvalidPredictionsError(
            f"{name} is a masked array with {int(np.ma.getmaskarray(values).sum())} masked values; "
            "remove these rows first, nothing is dropped for you"
        )
    if hasattr(values, "detach"):  # a torch tensor that takes part in a gradient
        values = values.detach()
    if "bfloat16" in str(getattr(values, "dtype", "")):  # a type that NumPy does not have
        values = values.float()
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        try:
            array = np.from_dlpack(values)
        except (TypeError, AttributeError, ValueError, RuntimeError, BufferError):
            raise InvalidPredictionsError(
                f"{name} cannot be read as one array ({error}); pass an array on the CPU in "
                "which all rows have the same length"
            ) from None
    if array.ndim == 2 and array.shape[1] == 1:
        if name == "probs" and bool((array == 1).all()):
            raise InvalidPredictionsError(
                "probs is a single column of ones, a classifier with one class: there is nothing "
                "to test. For a binary problem pass the probability of label 1"
            )
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise InvalidPredictionsError(
            f"{name} must have one or two dimensions, but its shape is {array.shape}"
        )
    if array.shape[0] == 0:
        raise InvalidPredictionsError(f"{name} is empty: there is nothing to test")
    return array


def _is_text(array: NDArray[Any]) -> bool:
    return array.dtype.kind in "US" or (
        array.dtype.kind == "O" and any(isinstance(v, str) for v in array.ravel()[:100])
    )


def _is_fractional(array: NDArray[Any]) -> bool:
    if array.dtype.kind != "f":
        return False
    finite = array[np.isfinite(array)]
    return bool(((finite > 0) & (finite < 1)).any()) and bool(((finite >= 0) & (finite <= 1)).all())


def _refuse_swapped(probs: NDArray[Any], labels: NDArray[Any]) -> None:
    if not _is_fractional(labels):
        return
    real = probs.dtype.kind == "f"
    whole = probs.dtype.kind in "biu" or (real and bool((probs == np.floor(probs)).all()))
    if _is_text(probs) or (probs.ndim == 1 and whole):
        raise InvalidPredictionsError(
            "probs and labels look swapped: labels holds fractions between 0 and 1 and probs "
            "holds none. The order is (probs, labels), the reverse of scikit-learn's"
        )


def _first(bad: BoolArray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))


def _at(position: tuple[int, ...]) -> str:
    row = f"row {position[0]}"
    return row if len(position) == 1 else f"{row}, column {position[1]}"


def _as_numbers(array: NDArray[Any], name: str) -> FloatArray:
    if array.dtype.kind in "USO":
        for position, value in np.ndenumerate(array):
            try:
                float(value)
            except (TypeError, ValueError):
                raise InvalidPredictionsError(
                    f"{name}: {_at(position)} is {str(value)!r}, which is not a number"
                ) from None
    elif array.dtype.kind not in "biuf":
        raise InvalidPredictionsError(f"{name} must hold real numbers, not {array.dtype}")
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        position = _first(~finite)
        raise InvalidPredictionsError(
            f"{name}: {_at(position)} is {numbers[position]} ({(~finite).sum()} such values in "
            "all); remove or repair these rows first, nothing is dropped for you"
        )
    return numbers


def _as_probabilities(array: NDArray[Any], from_logits: bool) -> tuple[FloatArray, tuple[str, ...]]:
    probs = _as_numbers(array, "probs")
    notes: list[str] = []
    if from_logits:
        from scipy.special import expit, softmax

        probs = expit(probs) if probs.ndim == 1 else softmax(probs, axis=1)
        notes.append("probabilities computed from logits")
    _refuse_out_of_range(probs)
    if probs.ndim == 1:
        above = int((probs > 1.0).sum())
        if above:
            probs = np.minimum(probs, 1.0)
            notes.append(f"{above} values were above 1 by rounding and count as 1")
        return np.column_stack([1.0 - probs, probs]), tuple(notes)
    sums = probs.sum(axis=1)
    deviation = np.abs(sums - 1.0)
    refused = deviation > SUM_TOLERANCE * (1.0 + 1e-9)
    if refused.any():
        row, count = int(np.argmax(refused)), int(refused.sum())
        raise InvalidPredictionsError(
            f"probs: row {row} sums to {sums[row]:.6g} ({count} of {len(sums)} rows are further "
            f"than {SUM_TOLERANCE:g} from 1); each row must be a distribution over all classes. If "
            "it is one, rounded to few decimals, divide each row by its sum"
        )
    inexact = deviation > SUM_EXACT
    if inexact.any():
        probs = probs / np.where(inexact, sums, 1.0)[:, None]  # never the caller's array
        count, most = int(inexact.sum()), deviation.max()
        notes.append(f"{count} rows renormalised (sums were within {most:.1g} of 1)")
    return np.minimum(probs, 1.0), tuple(notes)


def _refuse_out_of_range(probs: FloatArray) -> None:
    slack = SUM_TOLERANCE if probs.ndim == 2 else 1e-6  # a rounded 1.0000001 is repaired later
    outside = (probs < 0.0) | (probs > 1.0 + slack)
    if not outside.any():
        return
    position = _first(outside)
    curve = "softmax" if probs.ndim == 2 else "logistic function"
    logits = f"apply the {curve}, or pass from_logits=True (--from-logits)"
    if (probs <= 0.0).all():
        advice = f"These may be log-probabilities: apply exp. If they are logits: {logits}"
    elif probs.min() >= 0.0 and 2.0 < probs.max() <= 100.0:
        advice = f"If these are percentages, divide by 100; if they are logits, {logits}"
    elif (probs < 0.0).any() and (probs > 1.0).any():
        advice = f"These look like logits: {logits}"
    else:
        advice = f"Repair these values; if all are logits, {logits}"
    raise InvalidPredictionsError(
        f"probs: {_at(position)} is {probs[position]:.9g}, outside [0, 1] "
        f"({int(outside.sum())} such values in all). {advice}"
    )


def _class_names(classes: Sequence[Any] | None, n_classes: int) -> tuple[str, ...] | None:
    if classes is None:
        return None
    names = tuple(str(c) for c in classes)
    if len(set(names)) != len(names):
        raise InvalidPredictionsError(f"classes holds a name twice: {', '.join(names)}")
    if len(names) == 1:
        raise InvalidPredictionsError(
            f"there is a single class, {names[0]!r}: a one-class problem has nothing to test"
        )
    if len(names) != n_classes:
        raise InvalidPredictionsError(
            f"classes has {len(names)} names but probs describes {n_classes} classes"
        )
    return names


def _as_labels(array: NDArray[Any], n_classes: int, classes: Sequence[Any] | None) -> IntArray:
    if array.ndim == 2:
        return _from_one_hot(array, n_classes)
    if classes is not None and (_is_text(array) or _are_integers(classes)):
        return _from_names(array, classes)
    if _is_text(array):
        shown = ", ".join(repr(str(v)) for v in np.unique(array.astype(str))[:5])
        raise InvalidPredictionsError(
            f"labels are text ({shown}, …): pass classes=[…] (--classes), the label values in the "
            "order of the columns of probs"
        )
    numbers = _as_numbers(array, "labels")
    fractional = numbers % 1 != 0
    if fractional.any():
        (row,) = _first(fractional)
        raise InvalidPredictionsError(
            f"labels: row {row} is {numbers[row]:.6g}; labels are whole numbers from 0 to "
            f"{n_classes - 1}"
        )
    outside = (numbers < 0) | (numbers >= n_classes)
    if outside.any():
        (row,) = _first(outside)
        advice = ""
        if numbers.min() >= 1 and numbers.max() == n_classes:
            advice = ". They seem to run from 1: subtract 1"
        elif n_classes == 2 and set(np.unique(numbers)) <= {-1.0, 1.0}:
            advice = ". They seem to be −1 and 1: pass labels > 0"
        raise InvalidPredictionsError(
            f"labels: row {row} is {numbers[row]:.0f}, but with {n_classes} classes labels run "
            f"from 0 to {n_classes - 1}{advice}"
        )
    return numbers.astype(np.int64)


def _are_integers(classes: Sequence[Any]) -> bool:
    return all(isinstance(c, (int, np.integer)) and not isinstance(c, bool) for c in classes)


def _from_names(array: NDArray[Any], classes: Sequence[Any]) -> IntArray:
    text = _is_text(array)
    index = {(str(c) if text else float(c)): i for i, c in enumerate(classes)}
    values, inverse = np.unique(array.astype(str) if text else array, return_inverse=True)
    for value in values:
        if (str(value) if text else float(value)) not in index:
            row = int(np.argmax((array.astype(str) if text else array) == value))
            shown = repr(str(value)) if text else f"{value:g}"
            raise InvalidPredictionsError(
                f"labels: row {row} is {shown}, which is not one of the classes "
                f"{', '.join(str(c) for c in classes)}"
            )
    codes = np.array([index[str(v) if text else float(v)] for v in values], dtype=np.int64)
    return codes[inverse.ravel()]


def _from_one_hot(array: NDArray[Any], n_classes: int) -> IntArray:
    numbers = _as_numbers(array, "labels")
    wrong = ((numbers != 0) & (numbers != 1)).any(axis=1) | (numbers.sum(axis=1) != 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidPredictionsError(
            f"labels: row {row} is {numbers[row].tolist()}, which is not one-hot (a single 1, "
            "else 0); pass the class numbers as a 1-D array"
        )
    if numbers.shape[1] != n_classes:
        raise InvalidPredictionsError(
            f"labels is one-hot with {numbers.shape[1]} columns but probs describes "
            f"{n_classes} classes"
        )
    return numbers.argmax(axis=1)
