"""What users of other packages pass and type: each is told what to use here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Set
from difflib import get_close_matches
from functools import wraps
from os import PathLike
from typing import Any, TypeVar, cast

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
    "see side= of confidence_interval; a test knows what is unusual": "alternative",
}  # fmt: skip
WORDS = {word: advice for advice, words in _INSTEAD.items() for word in words.split()}
Function = TypeVar("Function", bound=Callable[..., Any])


def unknown(who: str, word: str, known: Collection[str]) -> TypeError:
    """Return the refusal of a keyword, with what to use in its place."""
    close = get_close_matches(word, known, 1)
    advice = f"did you mean {close[0]}=?" if close else WORDS.get(word)
    return TypeError(f"{who} has no argument {word!r}" + (f": {advice}" if advice else ""))


def refuse_misfit(who: str, takes: inspect.Signature, values: Any, options: Any) -> None:
    """Refuse arguments that are not taken."""
    try:
        takes.bind(*values, **options)
    except TypeError as error:
        for word in options:
            if word not in takes.parameters:
                raise unknown(who, word, takes.parameters) from None
        listed = [p.name + "=…" * (p.kind is p.KEYWORD_ONLY) for p in takes.parameters.values()]
        raise TypeError(f"{who} takes {', '.join(listed) or 'nothing'}: {error}") from None


def explained(function: Function) -> Function:
    """Have a function say what it takes, in place of Python's refusal."""
    takes = inspect.signature(function)

    @wraps(function)
    def call(*values: Any, **options: Any) -> Any:
        refuse_misfit(function.__qualname__, takes, values, options)
        return function(*values, **options)

    return cast(Function, call)


def refuse_form(values: Any, name: str) -> None:
    """Refuse what is no array, with the way from it to one."""
    form, advice = f"a {type(values).__name__}", ""
    if isinstance(values, (str, bytes, PathLike)):
        form, advice = f"{str(values)!r}", "read a file with read_predictions(path)"
        if name not in ("probs", "labels"):
            advice = "pass the values; names are for columns of a table or a file"
    elif isinstance(values, Set):
        advice = "it has no order: pass a list"
    elif isinstance(values, Iterator):
        advice = "it can be read only once: pass list(…) of it"
    elif callable(values) or hasattr(values, "predict_proba"):
        advice = "pass what it returns, such as model.predict_proba(X)"
    elif hasattr(values, "toarray"):
        advice = f"it is sparse: pass {name}.toarray()"
    elif isinstance(values, (int, float, complex)) or (values is None and name == "probs"):
        form, advice = repr(values), "pass a list or an array"
    if advice:
        raise InvalidPredictionsError(f"{name} is {form}, not an array: {advice}")
