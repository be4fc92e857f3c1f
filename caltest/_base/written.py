"""Values that print as they were written, so that a result carries a recipe that can be quoted.

:class:`Written` prints a dataclass by the options that differ from their defaults;
:func:`explained` replaces Python's errors for wrong arguments by suggestions; :class:`Doubt` is a
note that puts p-values in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Signature, signature
from os import PathLike
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar, Self, TypeAlias, TypeVar, cast

import numpy as np

from caltest._base.arrays import can
from caltest.errors import InvalidPredictionsError

#: What to use, and the keywords of other packages in whose place.
_INSTEAD = {
    "bins belong to the statistic, as in ECE(10) or ECE(QuantileBins(10)), or to a picture":
        "bins n_bins num_bins nbins bin_size",
    "name the binning: UniformBins(10) for 'uniform', QuantileBins(10) for 'quantile'": "strategy",
    "probabilities come first and labels second, by their place":
        "y_true y_prob y_pred y_proba y_score preds target",
    "use weights=, one number for each row": "sample_weight sample_weights",
    "use rng=, a seed or a Generator": "random_state seed random_seed",
    "use workers=, a number of threads": "n_jobs num_workers processes",
    "use n_resamples=": "B n_boot n_bootstrap n_iter n_permutations n_sim",
    "use level= of intervals and pictures, alpha= of audit": "alpha ci confidence_level level",
    "use clusters= for rows that depend on each other, by= for subgroups": "group groups",
    "use distance=, as in ECE(15, distance='l2')": "norm p_norm",
    "use classes=, in the order of the columns": "class_names target_names",
    "use from_logits=True": "logits",
    "use pos_label=": "positive_class",
    "Predictions.of takes complete rows: read_predictions(table, …) and the tests leave rows out":
        "drop_missing drop_labels",
    "see side= of confidence_interval; a test knows what is unusual": "alternative",
}  # fmt: skip


WORDS = {word: advice for advice, words in _INSTEAD.items() for word in words.split()}

#: Arguments of read_predictions that name or choose columns, which verbs on read rows lack.
OF_READING = frozenset(
    ("label", "where", "predicted_label", "competing", "format", "sheet", "votes")
)


#: Arguments, or fields of a result, by name: each has the type that its name has where it is taken.
Fields: TypeAlias = dict[str, Any]


Function = TypeVar("Function", bound=Callable[..., Any])


def first_of(names: Sequence[object], most: int = 5) -> str:
    """Return names as text, joined by commas; of a longer list the first ``most`` and "…"."""
    return ", ".join(map(str, names[:most])) + ", …" * (len(names) > most)


def unknown(who: str, word: str, names: Collection[str]) -> TypeError:
    """Return the TypeError for an unknown keyword, with the closest existing name as a suggestion.

    ``who`` is the function's name, ``word`` the keyword and ``names`` the keywords that exist.
    """
    close = get_close_matches(word, names, 1)
    advice = f"did you mean {close[0]}=?" if close else WORDS.get(word)
    if word in OF_READING and who != "Predictions.of":
        call = {"Monitor": "Monitor().update"}.get(who, who)
        table = f"for columns of a table: {call}(read_predictions(table, {word}=…))"
        advice = "; ".join(filter(None, (advice, table)))
    return TypeError(f"{who} has no argument {word!r}" + (f": {advice}" if advice else ""))


def refuse_misfit(
    who: str, takes: Signature, values: Iterable[object], options: Mapping[str, object]
) -> None:
    """Raise TypeError for arguments that a signature does not take, with a suggestion.

    ``who`` is the function's name, ``takes`` its signature; ``values`` and ``options`` are the
    positional and keyword arguments of the call. Returns None if they fit.
    """
    try:
        takes.bind(*values, **options)
    except TypeError as error:
        _refuse_names_of_columns(who, takes, [*values], options)
        for word in options:
            if word not in takes.parameters:
                raise unknown(who, word, takes.parameters) from None
        listed = [p.name + "=…" * (p.kind is p.KEYWORD_ONLY) for p in takes.parameters.values()]
        named = [name for name in listed if name.endswith("…")] * ("positional arg" in str(error))
        why = "; ".join([str(error), *(f"{name} is named" for name in named[:1])])
        raise TypeError(f"{who} takes {', '.join(listed) or 'nothing'}: {why}") from None


def _refuse_names_of_columns(
    who: str, takes: Signature, values: Sequence[object], options: Mapping[str, object]
) -> None:
    """Raise TypeError where columns of a table are named beside it, as read_predictions takes them.

    ``who`` is the name of the function that was called, ``takes`` its signature, ``values`` and
    ``options`` the positional and keyword arguments of the call. The message has the call that
    reads the table first. Nothing is raised, and None returned, for any other call.
    """
    names = [value for value in values[1:] if isinstance(value, str)]
    if "probs" not in takes.parameters or not values or not ("probs" in options or len(names) > 1):
        return
    said = dict(zip(("probs", "label"), names, strict=False)) | {
        word.replace("labels", "label"): value
        for word, value in options.items() if word in ("probs", "labels", *OF_READING)
    }  # fmt: skip
    shown = (f"{k}={v!r}" if isinstance(v, (str, list)) else f"{k}=…" for k, v in said.items())
    raise TypeError(
        f"{who} takes predictions, and columns of a table are named where it is read: "
        f"{who}(read_predictions(table, {', '.join(shown)}))"
    )


def explained(function: Function) -> Function:
    """Decorator: replace Python's TypeError for wrong arguments by one that suggests a name.

    It returns a function with the same signature and results; TypeErrors raised within the function
    pass unchanged.
    """
    takes = signature(function)

    @wraps(function)
    def call(*values: object, **options: object) -> object:
        try:
            return function(*values, **options)
        except TypeError:  # of the call itself, or raised within it
            refuse_misfit(function.__qualname__, takes, values, options)
            raise

    return cast(Function, call)


def refuse_form(values: object, name: str) -> None:
    """Raise InvalidPredictionsError for a value that is no array, and say how to get one from it.

    Examples are a path, which has to be read first, and a splitter passed as ``folds``. Arrays,
    lists and tables pass. ``name`` is the argument in messages.
    """
    form, advice = f"a {type(values).__name__}", ""
    if isinstance(values, (str, bytes, PathLike)):
        form, advice = f"{str(values)!r}", "read a file with read_predictions(path)"
        if name not in ("probs", "labels"):
            advice = "pass the values; names are for columns of a table or a file"
    elif name == "folds" and (
        can(values, "get_n_splits")
        or isinstance(values, (Iterator, int))
        or (isinstance(values, list) and isinstance(next(iter(values), None), tuple))
    ):
        advice = "pass the number of the fold of every row: for k, (_, test) in enumerate("
        advice += "splitter.split(X)): folds[test] = k"
    elif isinstance(values, Set):
        advice = "it has no order: pass a list"
    elif isinstance(values, Iterator):
        advice = "it can be read only once: pass list(…) of it"
    elif callable(values) or can(values, "predict_proba"):
        advice = "pass what it returns, such as model.predict_proba(X)"
    elif can(values, "toarray"):
        advice = f"it is sparse: pass {name}.toarray()"
    elif isinstance(values, (int, float, complex)) or (values is None and name == "probs"):
        form, advice = repr(values), "pass a list or an array"
    if advice:
        raise InvalidPredictionsError(f"{name} is {form}, not an array: {advice}")


#: What is written by its name; partial functions and callable values have none of their own.
WRITTEN_BY_NAME = (type, FunctionType, BuiltinFunctionType, np.ufunc)


def name_of(value: object) -> str:
    """Return a value as a recipe writes it: 0.5 for a NumPy number, a function by its name.

    Other values are written by their repr, tuples as lists.
    """
    if isinstance(value, tuple):
        return f"[{', '.join(map(name_of, value))}]"
    plain = value.item() if isinstance(value, np.generic) else value
    return plain.__name__ if isinstance(plain, WRITTEN_BY_NAME) else repr(plain)


class Doubt(str):
    """Note (a text) with a reason to doubt the data, and so the p-values.

    The sentence that states a verdict begins with it.
    """

    __slots__ = ()


class DependenceDoubt(Doubt):
    """Note (a text) that rows may depend on each other.

    With it, a rejection has the verdict "in doubt". ``clusters`` is the SQL expression of the
    column whose rows seem to depend, ``perhaps`` that of a column that may be a feature as well;
    "" if unknown.
    """

    __slots__ = ("clusters", "perhaps")
    clusters: str
    perhaps: str

    def __new__(cls, note: str, clusters: str = "", perhaps: str = "") -> Self:
        doubt = super().__new__(cls, note)
        doubt.clusters, doubt.perhaps = clusters, perhaps
        return doubt


class FollowupDoubt(Doubt):
    """Note (a text) that outcomes may not have been seen to their end.

    With it, a rejection has the verdict "in doubt".
    """

    __slots__ = ()


def as_doubt(note: str) -> Doubt:
    """Return a note as a :class:`Doubt`, a text that marks p-values as doubtful.

    A note that is a doubt already, of any kind, is returned unchanged.
    """
    return note if isinstance(note, Doubt) else Doubt(note)


def several(n: int, word: str) -> str:
    """Return a count with its noun: "1 row", "2 rows", "3 classes"."""
    return f"{n} {word}{'' if n == 1 else 'es' if word.endswith('s') else 's'}"


class _OfInit:
    """Descriptor that gives a class the signature of its ``__init__``, for help and messages.

    The signature is without ``self``.
    """

    def __get__(self, value: object, kind: Any) -> Signature:
        _, *parameters = signature(kind.__init__).parameters.values()
        return Signature(parameters)


#: The parameters of a class, looked up once.
_parameters = cache(signature)


class Written:
    """Mixin for dataclasses whose repr is the shortest code that creates them.

    Options with their default value are left out. Wrong arguments raise TypeError with a
    suggestion.
    """

    #: How many fields are always printed, the first of them by its place; other fields are options.
    essential: ClassVar[int] = 1
    __signature__ = _OfInit()

    def __new__(cls, *values: object, **options: object) -> Self:
        if values or options:  # a pickle comes without
            try:
                _parameters(cls).bind(*values, **options)  # type: ignore[arg-type]
            except TypeError:
                refuse_misfit(cls.__name__, signature(cls), values, options)
        return super().__new__(cls)

    def __repr__(self) -> str:
        arguments = []
        for j, field in enumerate(fields(self)):  # type: ignore[arg-type]
            value = vars(self)[field.name]
            if j < self.essential or value != field.default:
                place = "" if j == 0 and self.essential else f"{field.name}="
                arguments.append(place + name_of(value))
        return f"{type(self).__name__}({', '.join(arguments)})"
