"""The contract of column names: names that are read without an option, and how options select.

``CONTRACT`` lists the names; :func:`choose` decides which expressions are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from caltest.data.followup import Recorded
from caltest.data.labels import listed_classes
from caltest.errors import InvalidPredictionsError, Reading
from caltest.read.expressions import FAMILY, Term, ends_of, in_order, key, quoted, terms_of

if TYPE_CHECKING:
    pass


class Listed(NamedTuple):
    """A kind of column that is read without an option, with the names that tell it.

    ``what`` is the kind, such as "label"; ``names`` are the names of columns, such as "y", and
    ``holds`` describes their values in words.
    """

    what: str
    names: tuple[str, ...]
    holds: str


#: All names that are read without an option, compared in lower case with ``_`` for signs.
CONTRACT = (
    Listed(
        "label",
        (
            *("label", "labels", "y", "y_true", "target", "targets", "outcome", "true_label"),
            *("ground_truth", "truth", "actual", "gold", "correct", "is_correct"),
        ),
        "the outcome: 0/1 or true/false, or the end of a column's name in a family",
    ),
    Listed(
        "probability",
        (
            *("p", "prob", "probs", "proba", "probability", "y_prob", "y_score"),
            *("predicted_probability", "risk"),
        ),
        "the probability that the label is 1",
    ),
    Listed(
        "family",
        ("p_A", "prob_A", "proba_A", "p0", "0"),
        "the probabilities of the classes, one column each, named by the ends A, 0",
    ),
    Listed(
        "confidence",
        ("confidence", "conf", "certainty", "max_prob"),
        "the probability that an answer is right, beside the predicted class or a label that is "
        "called correct or is_correct",
    ),
)


LABELS, PROBABILITIES, _, CONFIDENCES = (frozenset(listed.names) for listed in CONTRACT)


#: Labels of these names say whether an answer was right.
SAY_RIGHT = frozenset({"correct", "is_correct"})


def contract_text() -> str:
    """Return a Markdown table of the column names that are read without an option.

    It has a row for each kind of column: "is read as", "names" and "holds". The documentation and
    ``--help`` show it.
    """
    lines = ["| is read as | names | holds |", "|---|---|---|"]
    for what, names, holds in CONTRACT:
        lines.append(f"| {what} | {', '.join(f'`{name}`' for name in names)} | {holds} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Wanted:
    """Options of a reading, one field for each option of :func:`caltest.read_predictions`.

    A field has the option's name and value; None, or False for a flag, where it was not given. The
    constructor raises InvalidPredictionsError for options that contradict each other, such as
    ``event`` with ``label``.
    """

    probs: str | Sequence[str] | None = None
    label: str | Sequence[str] | None = None
    predicted_label: str | None = None
    event: str | None = None
    competing: str | None = None
    time: str | None = None
    horizon: float | str | None = None
    strata: str | None = None
    by: str | Sequence[str] | None = None
    clusters: str | Sequence[str] | None = None
    weights: str | None = None
    folds: str | None = None
    ids: str | None = None
    items: str | None = None
    votes: str | Sequence[str] | None = None
    features: str | Sequence[str] | None = None
    where: str | None = None
    classes: Sequence[object] | None = None
    from_logits: bool = False
    renormalise: bool = False
    drop_missing: bool | float = False
    rounded: bool | Literal["auto"] = False
    multilabel: bool = False
    ordered: bool = False
    per_character: bool = False
    format: str | None = None
    sheet: str | None = None
    as_is: bool = False
    unit: float | None = None
    recorded: Recorded = "exact"
    decimal: Literal[".", ","] | None = None

    def __post_init__(self) -> None:
        classes = listed_classes(self.classes)
        object.__setattr__(self, "classes", [classes] if isinstance(classes, str) else classes)
        if self.multilabel:
            object.__setattr__(self, "probs", self.probs or "p_*")
            object.__setattr__(self, "label", self.label or "y_*")
        if self.votes is not None:
            self._refuse_beside_votes()
        follow = self.event is not None
        if follow and self.label is not None:
            raise InvalidPredictionsError(
                "the event replaces the label: name only one of them",
                [Reading({"label": None}, "rows were followed for a time"),
                 Reading({"event": None, "competing": None}, "all outcomes were seen")],
            )  # fmt: skip
        if not follow and (self.competing is not None or self.strata is not None):
            raise InvalidPredictionsError(
                "competing events and strata are for follow-up: name the event",
                [Reading({"event": "EXPR", "time": "COLUMN", "horizon": "NUMBER"})],
            )
        if not follow and (self.unit is not None or self.recorded != "exact"):
            raise InvalidPredictionsError(
                "a unit and how times were recorded are for follow-up: name the event",
                [Reading({"event": "EXPR", "time": "COLUMN", "horizon": "NUMBER"})],
            )
        if not follow and self.time is not None and self.horizon is None:
            raise InvalidPredictionsError(
                "a time needs a horizon. A forecast of a series: the number of steps that it looks "
                "ahead. Follow-up until an event: the time by which the event is predicted",
                [Reading({"horizon": "1"}, "each row forecasts the next one, one step ahead"),
                 Reading({"event": "EXPR", "horizon": "NUMBER"},
                         "the time is how long each row was followed, and EXPR a condition that is "
                         "true where the event occurred, such as \"status = 2\"")],
            )  # fmt: skip

    def _refuse_beside_votes(self) -> None:
        """Raise InvalidPredictionsError for options that contradict ``votes``, which are set.

        They name another outcome (``label``, ``predicted_label``, ``event``, ``items``), or design
        information that items do not have (``ids``, ``time``, ``horizon``, ``multilabel``).
        """
        for name in ("label", "predicted_label", "event", "items"):
            if getattr(self, name) is not None:
                raise InvalidPredictionsError(
                    f"votes are the outcomes of an item, counted by class, and stand in the place "
                    f"of the {name.replace('_', ' ')}: name one of them",
                    [Reading({name: None}, "a row is an item with its votes"),
                     Reading({"votes": None}, "a row has one outcome")],
                )  # fmt: skip
        for name in ("ids", "time", "horizon", "multilabel"):
            if getattr(self, name):
                raise InvalidPredictionsError(
                    f"votes take no {name} yet: leave it out", [Reading({name: None})]
                )

    @property
    def columns(self) -> dict[str, str | Sequence[str]]:
        """Options that were given and select columns, a dictionary of their values by name.

        Values are expressions, such as ``{"label": "status = 2"}``. A horizon is one of them only
        if it is not a number.
        """
        asked = {
            f.name: getattr(self, f.name)
            for f in fields(self)[: len(SINGLE_COLUMNS) + len(SEVERAL_COLUMNS)]
        }
        found = {name: value for name, value in asked.items() if value is not None}
        if "horizon" in found and as_number(found["horizon"]) is not None:
            del found["horizon"]
        return found


#: Options that take one column or expression, and those that take several.
SINGLE_COLUMNS = (
    *("predicted_label", "event", "competing", "time", "horizon", "strata", "weights", "folds"),
    *("ids", "items", "where"),
)
SEVERAL_COLUMNS = ("probs", "label", "by", "clusters", "votes", "features")


def as_number(word: object) -> float | None:
    """Return a number, or the number that a text denotes, as a float; None for anything else."""
    try:
        return float(word)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True)
class Chosen:
    """Columns and expressions chosen for a reading, by role such as "probs" and "label".

    ``terms`` maps each role to its expressions, each a :class:`Term`: the SQL and its polars form.
    ``classes`` are the ends of the names of several columns of probabilities, such as ("cat",
    "dog"), or None; ``named`` are the roles that the user named, the others having been found by
    the names of columns; ``about_answers`` says that the probability is that an answer is right.
    """

    terms: dict[str, list[Term]]
    #: Ends of the names of a family, in the order of its columns.
    classes: tuple[str, ...] | None = None
    #: Options that were given, as opposed to found by the contract.
    named: frozenset[str] = frozenset()
    #: Whether the probability is that an answer is right.
    about_answers: bool = False

    @cached_property
    def used(self) -> set[str]:
        """Names of the columns of the table that any of the chosen expressions uses."""
        return {root for listed in self.terms.values() for term in listed for root in term.roots}

    def sql(self, option: str) -> str:
        """Return the expressions chosen for an option, such as "probs", as SQL joined by commas.

        It is a value that the option takes on the command line. KeyError for an option that was not
        chosen.
        """
        return ", ".join(term.sql for term in self.terms[option])

    def name(self, option: str) -> str:
        """Return the columns and expressions of an option as one text, as messages name them.

        They are separated by commas. ``option`` is the role, such as "probs".
        """
        return ", ".join(term.name for term in self.terms[option])


class UnclearColumnsError(InvalidPredictionsError):
    """Error if no column, or more than one, has a name that tells its role.

    ``lacking`` is the role ("label", "probs", "predicted_label", or "time" beside an event), and
    ``fitting`` are the names of the columns that fit, () if none does.
    """

    def __init__(self, message: str, lacking: str, fitting: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.lacking = lacking
        self.fitting = tuple(fitting)


def choose(schema: Mapping[str, Any], wanted: Wanted) -> Chosen:
    """Return the expressions to read: from options where given, else by the names of columns.

    ``schema`` maps the names of columns to their types in polars, ``wanted`` has the options of
    :func:`read_predictions`. The result maps roles such as "probs" to lists of expressions, and
    says which roles the user named and what the classes are called.

    Raises
    ------
    UnclearColumnsError
        When no column, or several, have a name that tells a role.
    InvalidPredictionsError
        When an option names no column, or several in the place of one.
    """
    found: dict[str, list[Term]] = {}
    for option, value in wanted.columns.items():
        if option == "features" and value in ("*", ["*"]):
            continue
        number = as_number(value) if isinstance(value, str) and value not in schema else None
        if option == "probs" and number is not None:
            raise _constant(str(value), schema)
        found[option] = terms_of(value, schema)
        single = option in SINGLE_COLUMNS or (option == "label" and not wanted.multilabel)
        if single and len(found[option]) != 1:
            raise InvalidPredictionsError(
                f"{option.replace('_', ' ')} is one column or expression, not "
                f"{len(found[option])} ({', '.join(t.name for t in found[option])})",
                _several_outcomes(found[option], schema, wanted.probs is not None)
                if option == "label"
                else (),
            )
    if wanted.event is not None and (wanted.time is None or wanted.horizon is None):
        raise UnclearColumnsError(
            "an event needs the time that rows were followed for, and the horizon by which it is "
            "predicted",
            "time",
        )
    named = frozenset(found)
    chosen = Chosen(found, None, named)
    if not {"event", "label", "votes"} & found.keys():
        taken = _taken(chosen, "features", "where")
        fit = [name for name in schema if key(name) in LABELS and name not in taken]
        fit = [name for (name,) in _rather_unfiltered([[name] for name in fit], chosen)]
        if len(fit) != 1:
            raise UnclearColumnsError(_unclear(fit, "the label"), "label", fit)
        found["label"] = terms_of(fit, schema)
    if "probs" not in found:
        found["probs"] = _probabilities(schema, chosen)
    columns = [term.column for term in found["probs"]]
    whole = [column for column in columns if column is not None]
    classes = tuple(ends_of(whole)) if len(whole) == len(columns) > 1 else None
    said = [str(name) for name in wanted.classes or ()]
    if classes and set(said) == {*classes} and said != [*classes]:
        raise InvalidPredictionsError(
            f"the classes are given as {', '.join(said)}, but the columns {', '.join(whole)} are "
            f"called by these names in another order",
            [Reading({"classes": [*classes]})],
        )
    return replace(chosen, classes=classes, about_answers=_about_answers(chosen, wanted))


def _constant(number: str, schema: Mapping[str, Any]) -> InvalidPredictionsError:
    """Return the error for one number in the place of the column of probabilities.

    ``number`` is the number, written as SQL. ``schema`` maps the names of columns to their types;
    the error's reading has an expression over the first of them that is the number in every row.
    """
    name = next(iter(schema), None)
    case = f"CASE WHEN {quoted(name or '')} IS NULL THEN {number} ELSE {number} END"
    return InvalidPredictionsError(
        f"{number!r} is not a value of each row: it uses no column",
        [Reading({"probs": case})] if name is not None else [],
    )


def _probabilities(schema: Mapping[str, Any], chosen: Chosen) -> list[Term]:
    """Return the columns of probabilities that are known by their names, such as "p" or "p_cat".

    It is one column, or a family with one for each class, in the order of the classes; each is an
    expression (:class:`Term`). ``schema`` maps the names of columns to their types, and ``chosen``
    has the columns of other roles, which are not taken again. UnclearColumnsError if none or
    several fit, and for one column of a family alone, unless it is that for class 1.
    """
    taken = _taken(chosen, "where")
    free = [name for name in schema if name not in taken]
    one = [name for name in free if key(name) in PROBABILITIES | CONFIDENCES]
    family = [name for name in free if name not in one and FAMILY.fullmatch(name)]
    family = [n for n in family if schema[n].is_numeric() or str(schema[n]) == "String"]
    fit = _rather_unfiltered(
        [*([name] for name in one), *[in_order(family)] * bool(family)], chosen
    )
    if len(fit) != 1:
        listed = [", ".join(names) for names in fit]
        raise UnclearColumnsError(_unclear(listed, "the probability"), "probs", listed)
    family = [] if fit[0][0] in one else fit[0]
    if len(family) == 1 and ends_of(family)[0] != "1":
        raise UnclearColumnsError(
            f"{family[0]} is the probability of one class alone: say that it is the probability of "
            "the label, or name the columns of all classes",
            "probs",
            family,
        )
    return terms_of(fit[0], schema)


def _taken(chosen: Chosen, *but: str) -> set[str]:
    """Return the names of the columns that chosen expressions use.

    ``chosen`` has the expressions by role, such as "probs"; the roles ``but`` are ignored.
    """
    return replace(chosen, terms={o: t for o, t in chosen.terms.items() if o not in but}).used


def _rather_unfiltered(fit: list[list[str]], chosen: Chosen) -> list[list[str]]:
    """Return the candidates for a role that have a column which the user's ``where`` does not use.

    ``fit`` lists the candidates, each a list of column names; all are returned if every column of
    every candidate is used there. A column of a condition may also be the label or the prediction:
    ``p > 0.1``, ``y <> 9``. ``chosen`` has the expressions by role, such as "label", of which only
    "where" counts here.
    """
    filtered = {root for term in chosen.terms.get("where", ()) for root in term.roots}
    others = [names for names in fit if not {*names} <= filtered]
    return others or fit


def _about_answers(chosen: Chosen, wanted: Wanted) -> bool:
    """Return whether the probability is the confidence that an answer is right.

    It is if a predicted class is read, or the label is called "correct" or "is_correct". ``chosen``
    has the expressions by role, such as "probs", ``wanted`` the options of
    :func:`read_predictions`. UnclearColumnsError for a column called a confidence if neither it nor
    the label was named by the user and no predicted class is read.
    """
    listed = chosen.terms["probs"]
    if len(listed) > 1 or wanted.event is not None or wanted.votes is not None:
        return False
    if "predicted_label" in chosen.terms:
        return True
    label = chosen.terms["label"][0].column
    if label is not None and key(label) in SAY_RIGHT:
        return True
    sure = listed[0].column is not None and key(listed[0].column) in CONFIDENCES
    if sure and not {"probs", "label"} & chosen.named:
        raise UnclearColumnsError(
            f"{listed[0].column} is how sure a model is of an answer: name the predicted class, or "
            "a label that says whether it was right",
            "predicted_label",
        )
    return False


def _several_outcomes(
    columns: Sequence[Term], schema: Mapping[str, Any], given: bool
) -> list[Reading]:
    """Return the readings of several columns named in the place of a label, each with its options.

    A reading has options of :func:`read_predictions` to change, and the condition under which it is
    right. ``columns`` are the expressions that were named. Fractions are shares of votes; whole
    numbers are counts of votes, or marks of several labels. The list is empty for fewer than two
    columns, and for columns without numbers. ``schema`` maps the names of columns to their types.
    Readings name the columns of probabilities, which end as the outcomes do, unless these are
    ``given``.
    """
    names = [term.column for term in columns if term.column is not None]
    if len(names) < max(2, len(columns)) or not all(schema[n].is_numeric() for n in names):
        return []
    if any(schema[name].is_float() for name in names):
        return [Reading({"label": None, "votes": shares_of(term.sql for term in columns)},
                        "they are shares of a NUMBER of votes")]  # fmt: skip
    votes = ", ".join(term.sql for term in columns)
    counts: dict[str, Any] = {"label": None, "votes": votes}
    counted, several = "they count votes, or hold 1 for the class", "a row can have several labels"
    numeric = [name for name, kind in schema.items() if kind.is_numeric() and name not in names]
    found = [listed for listed in called_alike(names, numeric) if len(listed) == len(names)]
    listed = [[found_of[name] for name in names] for found_of in found]
    usual = [each for each in listed if all(name.startswith("p_") for name in each)]
    listed = usual if len(usual) == 1 else listed
    if len(listed) != 1:
        return [Reading(counts, counted)]
    plain = usual and all(name.startswith("y_") for name in names)
    probs = {"probs": ", ".join(map(quoted, listed[0]))}
    named: dict[str, Any] = {} if given or plain else probs
    return [
        Reading({"multilabel": True} | named, f"{several} at once"),
        Reading(counts | named, counted),
    ]


def called_alike(names: Sequence[str], others: Iterable[str]) -> list[dict[str, str]]:
    """Return columns that are called like ``names``, but for a word at the beginning or end.

    Each dictionary maps at least two of ``names`` to one of the ``others``: p_A, p_B to y_A, y_B,
    to A, B, or to A_true, B_true. Words are parted by ``_``, and the word is one for all. Columns
    with other words, or of none, are in dictionaries of their own.
    """
    bare = [{name: name for name in names}]
    for first in (True, False):
        parts = {name: name.partition("_") if first else name.rpartition("_") for name in names}
        words = {part[0] if first else part[2] for part in parts.values()}
        if len(words) == 1 and all(part[1] for part in parts.values()):
            bare.append({part[2] if first else part[0]: name for name, part in parts.items()})
    found: dict[tuple[str, str], dict[str, str]] = {}
    for stems in bare:
        for other in others:
            ways = {("", ""): other, (other.partition("_")[0], ""): other.partition("_")[2]}
            ways |= {("", other.rpartition("_")[2]): other.rpartition("_")[0]}
            for words_around, stem in ways.items():
                if stem in stems and stems[stem] != other:
                    found.setdefault(words_around, {})[stems[stem]] = other
    return [pairs for pairs in found.values() if len(pairs) > 1]


def shares_of(columns: Iterable[str]) -> str:
    """Return the value of ``votes=`` for columns of shares, such as "round(a * NUMBER), …".

    ``columns`` are expressions in SQL; NUMBER is a placeholder for the number of votes.
    """
    return ", ".join(f"round({sql} * NUMBER)" for sql in columns)


def _unclear(fitting: Sequence[str], what: str) -> str:
    """Return the message that the columns ``fitting`` could all be ``what``, or that none is.

    ``what`` is the role in words, such as "the label".
    """
    if fitting:
        return f"{what} could be {' or '.join(fitting)}"
    return f"caltest does not recognise a column name as {what}"


def steps(horizon: object) -> int:
    """Return the horizon as a number of steps ahead.

    ``horizon`` is a number, or text that denotes one. InvalidPredictionsError for text that is
    none, and for fractions.
    """
    number = as_number(horizon)
    if number is None or number != int(number):
        raise InvalidPredictionsError(
            f"without an event, the horizon is the number of steps ahead, which {horizon!r} is not"
        )
    return int(number)
