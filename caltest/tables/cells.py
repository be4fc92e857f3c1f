"""What cells mean: numbers, labels, marks of rows, and what is missing."""

from __future__ import annotations

import re
import warnings

import numpy as np

from caltest._base.arrays import BoolArray
from caltest._base.event_words import PENDING
from caltest._base.labels import marks as marks
from caltest._base.naming import nth
from caltest._base.reading import listed_rows
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError
from caltest.tables.names import CONFIDENCE
from caltest.tables.source import FIRST, MISSING, Column, is_number

#: Predictions of which so many were expected to be right, and none is, are of something else.
NEVER = 5.0


def missing(column: Column) -> Column:
    """Return which rows have no value: empty, ``NA``, ``null`` or the like, or a dash or dots.

    A dash is one where all other cells are numbers; beside a plus it is a label.
    """
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column).any(axis=tuple(range(1, column.ndim))))
    if column.dtype.kind not in "UO":
        return np.zeros(len(column), dtype=bool)
    texts = [str(cell).strip().lower() for cell in column.ravel().tolist()]  # None is one, too
    others = set(texts) - {*MISSING}
    dashes = {text for text in others if not any(map(str.isalnum, text))}
    if not dashes or not all(map(is_number, others - dashes)):
        dashes = set()
    none = np.array([text in MISSING or text in dashes for text in texts], dtype=bool)
    return np.asarray(none.reshape(column.shape).any(axis=tuple(range(1, column.ndim))))


def pending(column: Column) -> Column:
    """Return which labels are words for an outcome that is not known yet, beside two outcomes."""
    none = np.zeros(len(column), dtype=bool)
    if column.dtype.kind not in "UO" or column.ndim > 1:
        return none
    words = {cell: str(cell).strip().lower() for cell in set(column.tolist())}
    if len({*words.values()} - {*MISSING} - PENDING) != 2 or not PENDING & {*words.values()}:
        return none
    return np.array([words[cell] in PENDING for cell in column.tolist()])


def bare(cell: object) -> str:
    """Return a cell without its percent sign, before which a comma is one of decimals."""
    text = str(cell).strip()
    return re.sub(r"^(\d+),(\d+)\s*%$", r"\1.\2", text).removesuffix("%")


def numbers(column: Column, name: str, percent: bool | None = None) -> Column:
    """Return a column of probabilities; ``percent`` is None where there is no such option."""
    if percent:
        plain = [bare(c) for c in column] if column.dtype.kind in "UO" else column
        return numbers(np.asarray(plain), name) / 100.0
    if column.dtype.kind not in "UO":
        return column
    numeric = [*map(is_number, column.ravel())]
    if all(numeric):
        return column.astype(np.float64)
    place = numeric.index(False)
    cell, advice = str(column.ravel()[place]), ""
    if isinstance(column.ravel()[place], (bool, np.bool_)):
        advice = " but a class"
    elif "%" in cell and not all("%" in str(other) for other in column.ravel()):
        advice = ", and other cells have no percent sign: write all in one way"
    elif "%" in cell:
        option = ", or say percent=True (--percent)" if percent is not None else ""
        advice = f"; write fractions{option}"
    elif "," in cell:
        advice = "; write decimals with a point"
    message = f"column {name}, {nth(place)}: {cell!r} is not a number{advice}"
    raise InvalidPredictionsError(message, [("--percent",)] * ("percent=" in advice))


def are_numbers(column: Column) -> bool:
    """Say whether all cells that are not missing are numbers, perhaps with a percent sign."""
    if column.dtype.kind not in "UO":
        return column.dtype.kind in "iuf"
    values = column[~missing(column)].tolist()
    return all(is_number(bare(c) if isinstance(c, str) else c) for c in values)


def in_percent(column: Column, above: float = np.inf) -> bool:
    """Say whether all cells have a percent sign, or lie in [0, 100] and some are above a number.

    A name tells from which on they are percents (:func:`caltest.tables.names.percent_above`).
    """
    first = column[:FIRST].tolist() if column.dtype.kind in "UO" else []
    signed = any(isinstance(cell, str) and "%" in cell for cell in first)
    if column.ndim > 1 or not (signed or above < np.inf):
        return False
    cells = column[~missing(column)]
    if not cells.size or not are_numbers(cells):
        return False
    if any(isinstance(cell, str) and "%" in cell for cell in cells.tolist()):
        return all(str(cell).strip().endswith("%") for cell in cells)
    values = cells.astype(np.float64)
    return bool(values.min() >= 0.0 and above < values.max() <= 100.0)


def feature(column: Column) -> Column:
    """Return a column of a file as numbers or dates where all its cells are, None for no value."""
    absent, texts = missing(column), with_none(column)
    if column.dtype.kind not in "UO" or absent.all():
        return texts
    if all(map(is_number, texts[~absent])):
        return np.where(absent, np.nan, texts).astype(np.float64)
    try:
        with warnings.catch_warnings(action="ignore"):  # times of a zone become those of Greenwich
            return np.where(absent, "NaT", column.astype(str)).astype("datetime64[us]")
    except ValueError:
        return texts


def with_none(column: Column) -> Column:
    """Return a column in which None stands for no value, or NaN among numbers."""
    if column.dtype.kind == "f" or not (absent := missing(column)).any():
        return column
    column = column.astype(object)
    column[absent] = None
    return column


def with_gaps(column: Column, name: str, percent: bool | None = None) -> Column:
    """Return a column of numbers in which cells may be missing: NaN."""
    absent = missing(column)
    if absent.any() and column.dtype.kind != "f":
        column = np.where(absent, np.nan, column.astype(object))
    return numbers(column, name, percent)


def labels(column: Column) -> Column:
    """Return labels as numbers where every cell is one, else as text."""
    if column.dtype.kind not in "UO":
        return column
    text = np.char.strip(column.astype(str))
    try:
        return text.astype(np.float64)
    except ValueError:
        lowered = np.char.lower(text)
        if set(np.unique(lowered)) <= {"true", "false"}:
            return lowered == "true"
        return text


def alike(first: Column, second: Column) -> tuple[Column, Column]:
    """Return two columns of labels so that they can be compared: beside text 7.0 is "7"."""
    if first.dtype.kind == "U" or second.dtype.kind == "U":
        return marks(first).astype(str), marks(second).astype(str)
    return first, second


def right(
    label: Column, predicted: Column, confidence: Column, names: tuple[str, str, str], sure: bool
) -> BoolArray | None:
    """Return where a prediction was right, or None where ``confidence`` is that of label 1.

    Of two classes, p of one of them comes with the prediction of that class where p > ½, and of the
    other where p < ½. The confidence in a prediction is never below ½, or called so; what is
    neither is refused unless ``sure``. ``names`` are those of confidence, prediction and label.
    """
    prob, answer, truth = names
    label, predicted = alike(label, predicted)
    equal: BoolArray = label == predicted
    classes = set(np.unique(label).tolist()) | set(np.unique(predicted).tolist())
    if not equal.any() and (sure or confidence.sum() >= NEVER):
        shown = f" ({plain(predicted[0])} and {plain(label[0])} in the first)"
        raise InvalidPredictionsError(
            f"{answer} equals {truth} in no row{shown}: are they the predicted classes and what "
            "was observed?",
            [("!--predicted-label",)] * sure,
        )
    if sure or len(classes) != 2 or confidence.ndim > 1:
        return equal
    high = confidence > 0.5
    untied, off = confidence != 0.5, {}
    for event in sorted(classes):  # a tie may go either way
        off[event] = untied & ((predicted == event) != high)
        if not off[event].any() and (confidence < 0.5).any():
            if event == 1.0 and classes == {0.0, 1.0}:
                return None
            break
    else:
        if (confidence >= 0.5).all() or prob.lower() in CONFIDENCE:
            return equal
        event = max(classes)
    rows = f"; {answer} and {prob} ≥ 1/2 say different classes in {listed_rows(off[event])}, "
    rows += f"{several(int(off[event].sum()), 'row')} in all"
    raise InvalidPredictionsError(
        f"column {prob} could be the probability of label {plain(event)}, or that {answer} is "
        f"right: say pos_label={plain(event)!r} (--pos-label {plain(event)}) or "
        f"predicted_label={answer!r} (--predicted-label {answer}){rows * bool(off[event].any())}",
        [("--pos-label", str(plain(event))), ("--predicted-label", answer)],
    )


def plain(mark: object) -> object:
    """Return a number without a fraction as a whole number."""
    return int(mark) if isinstance(mark, float) and mark.is_integer() else mark


def garbled(column: Column, percent: bool = False) -> BoolArray:
    """Return which rows hold a cell that is no number, where the column has some that are."""
    if column.dtype.kind not in "UO" or column.ndim > 1:
        return np.zeros(len(column), dtype=bool)
    wrong = np.array([not is_number(bare(c) if percent else c) for c in column])
    return wrong & (not wrong.all())


def refuse_indicator(probs: Column, label: Column, name: str) -> None:
    """Refuse labels that say of one class whether it occurred."""
    n_classes = probs.shape[-1]
    if probs.ndim == 1 or n_classes < 3 or label.ndim == 2 or label.dtype.kind == "U":
        return
    if bool(((label == 0) | (label == 1)).all() and (label == 1).any()):
        raise InvalidPredictionsError(
            f"the labels in {name} hold only 0 and 1, but there are {n_classes} classes: if they "
            "say whether one class occurred, name such columns of all classes, label='*_outcome' "
            "(--label '*_outcome'); if they are classes, give these with classes=… (--classes "
            f"{','.join(map(str, range(n_classes)))})",
            [("--classes", ",".join(map(str, range(n_classes))))],
        )
