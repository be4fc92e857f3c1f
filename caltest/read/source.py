"""Columns by name, what they are called, and what their cells mean."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray
from caltest._base.naming import nth
from caltest._base.written import several
from caltest.data.labels import PENDING, lowered, marks
from caltest.data.numbers import listed_rows
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError

Column = AnyArray


#: Cells of a column that tell what it may be.
FIRST = 1000


#: Cells that say that nothing is known, in lower case.
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "<na>")


@dataclass(frozen=True)
class Source:
    """A table whose columns can be asked for by name.

    ``read`` turns names into columns: text stays text, a column of lists becomes two-dimensional.
    ``bare`` is what to say of one array without names, whose labels must be in a file of their own;
    ``content`` what JSON holds, before it is made into columns; ``log`` whether the format says
    that the columns ``probs``, ``label`` and ``id`` are these; ``notes`` say how they were made;
    ``frame`` whether it is in memory; ``parts`` names the files it consists of, and their rows;
    ``part`` whether other rows are in batches of their own; ``arrays`` whether columns are arrays,
    which may be of any shape.
    """

    names: list[str]
    read: Callable[[Sequence[str]], list[Column]]
    bare: str = ""
    content: object = None
    log: bool = False
    notes: tuple[str, ...] = field(default=())
    frame: bool = False
    parts: tuple[tuple[str, int], ...] = ()
    part: bool = False
    arrays: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            if name and self.names.count(name) > 1:
                raise InvalidPredictionsError(f"the table names the column {name!r} twice")

    def readable(self, names: Sequence[str]) -> dict[str, Column]:
        """Return those of some columns that can be read, such as no lists of text."""
        try:
            return dict(zip(names, self.read(names), strict=True))
        except InvalidPredictionsError:
            columns = {}
            for name in names:
                with suppress(InvalidPredictionsError):
                    columns[name] = self.read([name])[0]
            if not columns:
                raise
            return columns

    def listing(self, names: Sequence[str]) -> str:
        """Return the names of columns, those of arrays with their shapes."""
        if not self.arrays:
            return listing(names)
        shapes = {name: str(array.shape) for name, array in self.readable(names).items()}
        return ", ".join(f"{name} {shapes.get(name, '')}".strip() for name in names)

    def advice(self, what: str) -> str:
        """Return how a column is named by whoever asked for the table."""
        if not self.frame:
            return f"{what}= (--{what})"
        if what == "label":
            return "labels='COLUMN'"
        return "a table that has no others"

    def to_be_sure(self, what: str) -> str:
        """Return how to say what was found, after a note on that."""
        return "" if self.frame else f"; name it with {what}= (--{what}) to be sure"


def listing(names: Iterable[str]) -> str:
    """Return all the names."""
    return ", ".join(filter(None, names)) or "no columns"


def is_number(cell: object) -> bool:
    """Return whether a cell is a number, also one that is written, and no boolean."""
    if isinstance(cell, (bool, np.bool_)):
        return False
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


# ------------------------------------------------------------------------------
# What columns are called that hold labels, probabilities and other things.


#: Names under which labels are found, compared in lower case; the second row if none of the first.
LABELS = (
    ("label", "labels", "y", "y_true", "target", "targets", "outcome", "outcomes"),
    ("true_label", "ground_truth", "actual", "correct_answer", "gold", "correct", "is_correct"),
    (
        *("truth", "true_class", "true_answer", "gold_label", "gold_answer", "observed"),
        *("answer", "y_test", "ref", "reference", "actual_class", "actual_label", "mask", "masks"),
        *("true_labels", "gt", "gts", "groundtruth", "true"),
    ),
)


#: Labels of these names, where there are two, say whether a prediction was right.
SAYS_RIGHT = ("correct", "is_correct", "was_correct", "is_right", "right")


#: Words in names of columns in which somebody says whether a prediction was right.
VERDICTS = {"verdict", "judge", "judged", "judgement", "judgment", "graded", "correctness"}


#: Names of predicted classes.
PREDICTED = {
    *("pred_label", "predicted_label", "predicted", "prediction", "pred", "y_pred", "y_hat"),
    *("pred_class", "predicted_class", "top_label", "top_class", "answer", "model_answer"),
    *("predicted_answer", "llm_answer", "response", "choice", "model_choice", "guess"),
}


#: Names of the probability that a prediction is right.
CONFIDENCE = (
    *("confidence", "confidences", "conf", "max_prob", "certainty", "stated_confidence"),
    *("verbal_confidence", "model_confidence"),
)


#: Names of one column or array that holds all probabilities.
WHOLE = (
    (
        *("p", "prob", "probs", "proba", "probability", "probabilities", "y_prob", "y_pred_proba"),
        *("y_score", "y_proba", "pred_prob", "predicted_prob", "predicted_probability"),
        *("predicted_risk", "pop", "softmax", "sigmoid"),
    ),
    (*CONFIDENCE, "score", "scores", "predictions", "risk", "forecast"),
)


#: Names of what ended a follow-up, which is no label where some were not followed to the horizon.
EVENTS = {"event", "events", "status", "died", "dead", "death"}


#: Words of which one is in names of times, beside which an event may be one of a follow-up.
TIMES = {"time", "times", "years", "months", "weeks", "days", "duration", "survival", "followup"}


#: Words in names of times that are of the row, not of its outcome.
STAYS = {"los", "stay", "age", "tenure", "waiting", "since"}


#: Those of which one says that rows were followed.
FOLLOW_UP = {"follow", "followup", "fu", "survival", "tte", "censoring"}


#: Words in names of the times of rows, not of what they were followed for.
DATES = {"date", "dates", "datum", "datetime", "timestamp", "ts"}


#: Words in names of what is known with the outcome or made of it, which is no feature.
HINDSIGHT = {
    *("target", "gold", "truth", "actual", "observed", "obs", "loss", "pred", "los", "stay"),
    *("fold", "folds", "verdict", "judge", "precip"),
}


#: Names in a table of counts, one row a grade.
COUNTS = {"defaults", "obligors", "pd", "impressions", "anzahl", "schuldner", "obligor", "nombre"}


#: Words of which one is in names of probabilities that are none of these.
PROBABILITIES = {
    *("prob", "probs", "proba", "probability", "risk", "chance"),
    *("confidence", "conf", "certainty", "forecast", "predicted", "prediction", "pred"),
}


#: Those that may be percents without a sign, and words in names of what is no outcome.
SHARES = {*PROBABILITIES, "pop"} - {"forecast", "predicted", "prediction", "pred"}


NO_OUTCOMES = {
    *("fold", "split", "sex", "gender", "group", "treated", "treatment", "male", "female"),
    *("prior", "previous", "past", "history", "last", "baseline", "yesterday", "lag", "lagged"),
    *("station", "site", "region", "country", "city", "hospital", "clinic", "branch"),
    *("language", "lang", "platform", "channel", "version", "model", "season"),
}


#: Words in names of outcomes, which tell one of several columns of 0 and 1.
OUTCOMES = {
    *(EVENTS - {"status"}),
    *("default", "defaulted", "defaults", "churn", "churned", "attrition", "click", "clicked"),
    *("fraud", "fraudulent", "chargeback", "conversion", "converted", "bought", "purchased"),
    *("relapse", "relapsed", "recurrence", "readmission", "readmitted", "deceased", "malignant"),
    *("ausfall", "ereignis", "ergebnis", "rechute", "esito", "resultado", "verdict"),
    *("rain", "rained", "occurred", "happened", "outcome", "label", "target", "truth", "won"),
}


#: Words in names of fractions that are no probabilities.
NO_PROBABILITIES = {
    *("weight", "weights", "threshold", "cutoff", "ratio", "ltv", "dti", "utilization", "discount"),
    *("latency", "seconds", "temperature", "loss", "entropy", "similarity", "distance", "lon"),
}


#: Words that say percent, and those of columns of which it is asked whether they are percents.
PERCENT = {"pct", "percent", "percents", "percentage", "perc", "prozent", "pourcent", "porcentaje"}


PERCENTS = {*SHARES, *PERCENT, "share", "score", "likelihood"}


#: Names of a column that says whose forecasts rows are.
MODELS = ("model", "model_name", "model_id", "classifier", "forecaster", "algorithm", "llm")


#: What families of columns, one a class, begin with: ``p_cat``, ``p1``; also bare numbers.
FAMILIES = ("p", "prob", "probs", "proba")


#: Words in names of columns that name rows, where each value occurs once.
IDS = {
    *("id", "ids", "uid", "uuid", "guid", "key", "image", "img", "file", "filename", "path"),
    *("sample", "example", "case", "item", "question", "transaction", "txn", "index", "row"),
}


#: Words in names of columns of those who may have several rows, which then depend on each other.
OWNERS = {
    *("patient", "subject", "customer", "client", "user", "account", "session", "member"),
    *("household", "player", "device", "visitor", "borrower", "document", "doc", "kunde"),
}


#: Names of a column that says how much rows count; "weight" alone may be that of a body.
WEIGHTS = {
    *("sample_weight", "sample_weights", "sampling_weight", "sampling_weights", "survey_weight"),
    *("row_weight", "case_weight", "inverse_probability_weight", "ipw", "ipcw", "weights"),
}


#: Words in names of amounts, of which an event is a comparison with a number.
AMOUNTS = {
    *("precip", "precipitation", "rain", "rainfall", "mm", "inches", "dpd", "amount", "days"),
    *("score", "rating", "obs", "observed", "delinquent", "overdue", "arrears"),
}


#: Words in names of columns that may say which rows belong together, when, and for how long.
FACTS = {
    *(IDS | DATES | TIMES | FOLLOW_UP),
    *("patient", "subject", "customer", "client", "user", "cluster", "group", "site", "hospital"),
    *("center", "centre", "doctor", "reader", "station", "account", "document", "doc", "session"),
    *("fold", "split", "weight", "weights", "month", "year", "day", "kunde", "kundennummer"),
}


def key(name: str) -> str:
    """Return a name as the lists above have them: "True class?" is "true_class"."""
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


def words(name: str) -> list[str]:
    """Return the words of a name in lower case: "risk_5y" and "Risk 5y" have "risk" and "y"."""
    parts = re.findall(r"[A-ZÀ-Þ]+(?![a-zß-ÿ])|[A-ZÀ-Þa-zß-ÿ][a-zß-ÿ]*", name)
    return [part.lower() for part in parts]


def in_hindsight(name: str) -> bool:
    """Say whether a name says that a column is known with the outcome, or weighs it: no feature."""
    return bool(HINDSIGHT & {*words(name)}) or key(name) in {*WEIGHTS, *SAYS_RIGHT}


def says_percent(name: str) -> bool:
    """Say whether a name says that a column is in percent."""
    return "%" in name or bool(PERCENT & {*words(name)}) or "pc" in key(name).split("_")


def percent_above(name: str) -> float:
    """Return above which number a column holds percents by its name, infinity without a word of it.

    A name that says percent leaves no doubt above 1; others may be of a scale up to 10.
    """
    if says_percent(name):
        return 1.0
    return 10.0 if SHARES & {name.lower(), *words(name)} else float("inf")


# ------------------------------------------------------------------------------
# What cells mean: numbers, labels, marks of rows, and what is missing.


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

    A name tells from which on they are percents (:func:`caltest.read.source.percent_above`).
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


# ------------------------------------------------------------------------------
# Free answers, which are compared with the true ones as a reader would.


#: Different true answers from which on these are no names of classes.
FREE = 27


def answers_alike(
    truth: Column, answer: Column, names: tuple[str, str]
) -> tuple[Column, Column, str]:
    """Return true and given answers so that they can be compared, and how in words.

    Free answers are alike whatever their case and last point. One that holds the true answer among
    other words is none that is equal, which is doubted: somebody has to judge it.
    """
    if truth.dtype.kind != "U" or answer.dtype.kind != "U" or np.unique(truth).size < FREE:
        return truth, answer, ""
    label, reply = (np.char.rstrip(lowered(texts), ".") for texts in (truth, answer))
    more = int(((label == reply) & (np.char.strip(truth) != np.char.strip(answer))).sum())
    pairs = zip(label.tolist(), reply.tolist(), strict=True)
    longer = sum(a != b and f" {a} " in f" {b} ".replace(",", " ") for a, b in pairs if a)
    if longer:
        warnings.warn(
            f"{names[0]} holds {names[1]} among other words in {several(longer, 'row')}, which are "
            "taken as wrong: if they are right, have the answers judged, and name the column of "
            "the verdicts with label= (--label)",
            DoubtfulInputWarning,
            stacklevel=5,
        )
    how = f", whatever their case and last point (which matters in {several(more, 'row')})"
    return label, reply, how * bool(more)
