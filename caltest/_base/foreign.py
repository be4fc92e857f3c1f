"""What users of other packages pass and type: each is told what to use here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from difflib import get_close_matches
from os import PathLike
from typing import Any

from caltest.errors import InvalidPredictionsError

_BINS = "bins belong to the statistic, as in ECE(10) or ECE(QuantileBins(10)), or to a picture"
_ORDER = "probabilities come first and labels second, by their place"
_DRAWS, _LEVEL = "use n_resamples=", "use level= of intervals and pictures, alpha= of audit"
#: Keywords of other packages, or of another place in this one, and what to use.
WORDS = {
    **dict.fromkeys(("bins", "n_bins", "num_bins", "nbins", "bin_size"), _BINS),
    **dict.fromkeys(
        ("y_true", "y_prob", "y_pred", "y_proba", "y_score", "preds", "target"), _ORDER
    ),
    **dict.fromkeys(("B", "n_boot", "n_bootstrap", "n_iter", "n_permutations", "n_sim"), _DRAWS),
    **dict.fromkeys(("alpha", "ci", "confidence_level", "conf_level", "level"), _LEVEL),
    **dict.fromkeys(("random_state", "seed", "random_seed"), "use rng=, a seed or a Generator"),
    **dict.fromkeys(("n_jobs", "num_workers", "processes"), "use workers=, a number of threads"),
    **dict.fromkeys(("sample_weight", "sample_weights"), "use weights=, one number for each row"),
    **dict.fromkeys(("groups", "group"), "use clusters= for rows that depend, by= for subgroups"),
    **dict.fromkeys(
        ("class_names", "target_names", "labels_names"), "use classes=, in their order"
    ),
    **dict.fromkeys(("num_classes", "n_classes"), "classes are counted from the columns of probs"),
    **dict.fromkeys(("norm", "p_norm"), "use distance=, as in ECE(15, distance='l2')"),
    "strategy": "name the binning: UniformBins(10) for 'uniform', QuantileBins(10) for 'quantile'",
    "alternative": "use side= of confidence_interval; in tests the statistic knows what is unusual",
    "logits": "use from_logits=True",
    "positive_class": "use pos_label=",
    "verbose": "progress shows by itself, on a terminal",
}


def unknown(who: str, word: str, known: Collection[str]) -> TypeError:
    """Return the refusal of a keyword, with what to use in its place."""
    advice, close = WORDS.get(word), get_close_matches(word, known, 1)
    if close:
        advice = f"did you mean {close[0]}=?"
    return TypeError(f"{who} has no argument {word!r}" + (f": {advice}" if advice else ""))


def signature(made: Callable[..., Any]) -> inspect.Signature:
    """Return what a function or class takes; of a class that is what its ``__init__`` takes."""
    if not isinstance(made, type):
        return inspect.signature(made)
    own: Callable[..., Any] = made.__init__  # type: ignore[misc]
    _, *parameters = inspect.signature(own).parameters.values()
    return inspect.Signature(parameters)


def refuse_misfit(made: Callable[..., Any], values: Any, options: Mapping[str, Any]) -> None:
    """Refuse arguments that a function or class does not take."""
    takes = signature(made)
    try:
        takes.bind(*values, **options)
    except TypeError as error:
        for word in options:
            if word not in takes.parameters:
                raise unknown(made.__name__, word, takes.parameters) from None
        listed = [p.name + "=…" * (p.kind is p.KEYWORD_ONLY) for p in takes.parameters.values()]
        shown = ", ".join(listed) or "nothing"
        raise TypeError(f"{made.__name__} takes {shown}: {error}") from None


def refuse_form(values: Any, name: str) -> None:
    """Refuse what is no array, with the way from it to one.

    Raises
    ------
    InvalidPredictionsError
        For text, paths, dictionaries, sets, generators, functions, models, sparse and lazy tables.
    """
    found, advice = f"a {type(values).__name__}", ""
    if isinstance(values, (str, bytes, PathLike)):
        found, advice = f"{str(values)!r}", "read a file with read_predictions(path)"
        if name not in ("probs", "labels"):
            advice = "pass the values; names of columns are for read_predictions"
    elif isinstance(values, Mapping):
        advice = "pass one array, such as np.column_stack(list(d.values())) for columns of numbers"
    elif isinstance(values, Set):
        advice = "it has no order: pass a list"
    elif isinstance(values, Iterator):
        advice = "it can be read only once: pass list(…) of it"
    elif hasattr(values, "predict_proba") or callable(values):
        advice = "pass what it returns, such as model.predict_proba(X)"
    elif hasattr(values, "toarray"):
        advice = f"it is sparse: pass {name}.toarray()"
    elif type(values).__name__ == "LazyFrame":
        advice = f"it holds no values yet: pass {name}.collect()"
    elif isinstance(values, (int, float, complex)) or (values is None and name == "probs"):
        found, advice = repr(values), "pass a list or an array"
    if advice:
        raise InvalidPredictionsError(f"{name} is {found}, not an array: {advice}")
