"""The verbs that compare the calibration of two models, and of several."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Unpack

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.checks import fraction, number, one_of
from caltest._base.containers import opened
from caltest._base.defaults import LEVEL, N_RESAMPLES
from caltest._base.facts import refuse_unlike
from caltest._base.multiplicity import holm
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.inference.admission import ROWS, admitted, admitted_tally, refuse_strange, tallies_of
from caltest.inference.analysis import Analysis
from caltest.inference.pair import HYPOTHESES, Method, Model, Settings, compared, verdict
from caltest.inference.series import refuse_few_blocks
from caltest.inference.subgroups import with_subgroups
from caltest.lenses import LensLike
from caltest.predictions import Facts, Predictions
from caltest.predictions.matching import has_labels, match_rows, with_ids
from caltest.results import ComparisonResult, ComparisonTable, ending
from caltest.simulate import Run, Workers
from caltest.statistics import DebiasedL2, StatisticLike
from caltest.tally import AnyTally, Source

#: What to say of other rows.
UNPAIRED = "of other observations pass labels_b and paired=False (--unpaired)"


def compare(
    probs_a: object,
    probs_b: object = None,
    labels: object = None,
    statistic: StatisticLike = DebiasedL2(),
    *,
    lens: LensLike | None = None,
    paired: bool = True,
    labels_b: object = None,
    method: Method = "auto",
    level: float = LEVEL,
    margin: float = 0.02,
    names: tuple[str, str] = ("A", "B"),
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> ComparisonResult:
    r"""Compare the calibration of two models: their debiased squared errors (:class:`DebiasedL2`).

    Parameters
    ----------
    probs_a, probs_b : array_like of shape (n,) or (n, K), or Predictions
        What both predict for the same observations, in the same order. Or two :class:`Tallies` of
        the same rows, whose samples are compared; or, with ``paired=False``, two :class:`Tally` of
        one lens and grid, of other observations.
    labels : array_like of shape (n,)
        Observed classes; left out when a model is a :class:`Predictions`, which knows them.
    statistic : callable, default DebiasedL2(UniformBins(15))
        What is compared. For the other binned errors no valid test of equal error is known:
        ``DebiasedL2`` on the same bins is tested, the statistic itself in each own test.
    lens, n_resamples, rng, workers, **facts
        As in :func:`calibration_test`; facts are those of the rows, for all models, and ``ids``
        must agree. Of clusters, pairs of rows within are left out of T, and clusters are what
        varies. With ``by`` models are compared in every subgroup, too, with Holm's p-values.
    paired : bool, default True
        Whether the rows of both models are the same observations.
    labels_b : array_like of shape (m,), optional
        The labels of a second model of other observations: the comparison is then unpaired.
    method : {"auto", "z", "swap"}, default "auto"
        ``"z"`` (the default): the level at which a limit of the difference just meets 0, by the
        corrected jackknife variance and allowances for what the rows cannot show. ``"swap"``:
        exact for the much stronger hypothesis that the models could change places in every row; it
        rejects equally calibrated ones too.
    level, margin : float, default 0.95 and 0.02
        Of the intervals, with differences called at 1 − ``level``; and a difference of root mean
        squared errors that does not matter: models are tied when the interval lies within
        ± ``margin``\ ², because \|√s − √t\| ≤ √\|s − t\|.
    names : tuple of str, default ("A", "B")
        What to call the models.

    Raises
    ------
    InvalidPredictionsError
        When rows of the models do not match.
    StatisticError
        When no valid test is known for the statistic (any other than a binned error, except with
        ``method="swap"``), or no two rows share a cell.

    Notes
    -----
    T = (1/n) Σ_{i≠j} w_ij r_i · r_j over pairs of rows in one cell is a difference of two
    U-statistics, whose linear part vanishes when both models are calibrated. The jackknife counts
    the quadratic part twice there; taking it off once, and never going below it, is right for both.
    Allowances: :mod:`caltest.inference.reach`. With clusters or weights Student's law replaces the
    normal one, with the effective number of units, (Σ W_u)² / Σ W_u², less 1. O(n K) plus the own
    tests.

    References
    ----------
    Efron & Stein, "The jackknife estimate of variance", Annals of Statistics 1981. Fay & Feuer,
    "Confidence intervals for directly standardized rates", Statistics in Medicine 1997. Kumar,
    Liang & Ma, "Verified uncertainty calibration", NeurIPS 2019.

    Examples
    --------
    >>> from caltest.examples import GaussianMixture
    >>> right = GaussianMixture(0.0, -2.0).sample(2000, rng=1)
    >>> steep = GaussianMixture(0.0, -4.0).sample(2000, rng=1)  # the same observations
    >>> result = compare(right, steep, names=("right", "steep"), n_resamples=99, rng=1)
    >>> result.finding, result.pvalue < 1e-4
    ('right is better calibrated', True)
    """
    _refuse_settings("compare", level, margin, method, facts)
    if isinstance(probs_a, Mapping):
        raise StatisticError("several models are compared by compare_models(models, labels)")
    if probs_b is None and probs_a is not None:
        raise InvalidPredictionsError("probs_b is missing: pass the predictions of both models")
    one_of("paired", paired, (True, False))
    if isinstance(names, str) or np.shape(names) != (2,):
        raise StatisticError(f"names must be two names, not {names!r}")
    data: Mapping[str, Source]
    if tallies := tallies_of(probs_a, probs_b):
        labels = labels_b if labels is None else labels
        data = _of_tallies(tallies, names, labels, paired, method, facts, lens)
    elif paired and labels_b is None:
        both_models = dict(zip(names, (probs_a, probs_b), strict=True))
        data = _same_rows(both_models, labels, facts, UNPAIRED)
    else:
        paired = False
        if labels_b is None and not isinstance(probs_b, Predictions):
            raise InvalidPredictionsError(
                "an unpaired comparison needs labels_b, the labels of the second model"
            )
        both = zip(names, (probs_a, probs_b), (labels, labels_b), strict=True)
        data = {name: _predictions(name, p, y, facts) for name, p, y in both}
    method = "z" if method == "auto" else method
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    if any(d.by is not None for d in data.values()):
        if not paired:
            raise StatisticError("by is of two models on the same rows: compare them two by two")

        def ask(a: Predictions, b: Predictions) -> ComparisonResult:
            return compare(
                *(a, b, None, statistic), lens=lens, method=method, level=level, margin=margin,
                names=names, **run,
            )  # fmt: skip

        return with_subgroups(ask, *(d for d in data.values() if isinstance(d, Predictions)))
    settings, models = _models(data, statistic, lens, method, paired, level, margin, run)
    return compared(settings, *models)


def compare_models(
    models: Mapping[str, object],
    labels: object = None,
    statistic: StatisticLike = DebiasedL2(),
    *,
    lens: LensLike | None = None,
    method: Method = "auto",
    level: float = LEVEL,
    margin: float = 0.02,
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> ComparisonTable:
    """Compare the calibration of all pairs of several models on the same rows, by Holm's method.

    Parameters
    ----------
    models : mapping of str to array_like of shape (n,) or (n, K), or Predictions
        What the models predict for the same observations, by name.
    labels, statistic, lens, method, level, margin, n_resamples, rng, workers, **facts
        As in :func:`compare`; ``by`` is refused.

    Raises
    ------
    InvalidPredictionsError, StatisticError
        As :func:`compare`, and for fewer than two models.

    Examples
    --------
    >>> from caltest.examples import GaussianMixture
    >>> models = {str(s): GaussianMixture(0.0, s).sample(2000, rng=1) for s in (-2, -4, -8)}
    >>> table = compare_models(models, n_resamples=99, rng=1)
    >>> table.names, table.pair("-2", "-8").finding
    (('-2', '-4', '-8'), '-2 is better calibrated')
    """
    _refuse_settings("compare_models", level, margin, method, facts)
    data = _same_rows(dict(models), labels, facts) if models else {}
    if any(d.by is not None for d in data.values()):
        raise StatisticError("by is of two models on the same rows: compare them two by two")
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    method = "z" if method == "auto" else method
    settings, members = _models(data, statistic, lens, method, True, level, margin, run)
    # From the best calibrated on, so that letters run down the table
    ranked = sorted(members, key=lambda m: m.estimate)
    pairs = [compared(settings, a, b) for a, b in combinations(ranked, 2)]
    adjusted = holm([pair.pvalue for pair in pairs])
    judged = list(zip(pairs, adjusted, strict=True))
    # Letters join models that no adjusted p-value separates.
    together = {frozenset(pair.names) for pair, p in judged if p > 1.0 - level}
    names, first = tuple(m.name for m in ranked), pairs[0]
    return ComparisonTable(
        names=names,
        pairs=tuple(pairs),
        adjusted=tuple(adjusted),
        verdicts=tuple(verdict(settings, r.difference, p, r.low, r.high) for r, p in judged),
        indistinguishable=tuple(_groups(names, together)),
        level=level,
        **{name: vars(first)[name] for name in OF_ALL_PAIRS},
        ended=ending(*(pair.ended for pair in pairs)),
        notes=tuple(dict.fromkeys(note for r in pairs for note in r.notes)),
        copies=max(pair.copies for pair in pairs),
    )


#: What a table says as each of its pairs does.
OF_ALL_PAIRS = [
    "n",
    "n_classes",
    "effective_n",
    "n_clusters",
    "folds",
    "series",
    "n_resamples",
    "seed",
]


def _refuse_settings(verb: str, level: float, margin: float, method: str, facts: Facts) -> None:
    refuse_strange(verb, facts)
    fraction("level", level)
    number("margin", margin, 0.0, 1.0, "[]")
    one_of("method", method, ("auto", *HYPOTHESES))


def _models(
    data: Mapping[str, Source], statistic: StatisticLike, lens: LensLike | None, method: Method,
    paired: bool, level: float, margin: float, run: Run,
) -> tuple[Settings, list[Model]]:  # fmt: skip
    """Look at every model through the lens of the first, and test it by itself."""
    if len(data) < 2:
        raise StatisticError("a comparison needs two models with different names")
    # One lens for all: where none is named, the usual one of the first model
    first = Analysis.of_data("compare", next(iter(data.values())), lens)
    settings = Settings(statistic, first.lens, method, paired, level, margin, run)
    return settings, [Model.of(name, model, settings) for name, model in data.items()]


def _of_tallies(
    models: list[AnyTally], names: tuple[str, str], labels: object, paired: bool, method: Method,
    facts: Facts, lens: LensLike | None,
) -> Mapping[str, Source]:  # fmt: skip
    """Return two tallies as the lens sees them, or the rows that their samples share."""
    if len(models) < 2:
        raise StatisticError("a tally is compared with a tally: tally the rows of both models")
    first, second = (
        admitted_tally("compare", model, labels, facts, lens, whole=paired) for model in models
    )
    if paired:
        return _same_rows(dict(zip(names, first.paired(second), strict=True)), None, {})
    if method == "swap":
        raise StatisticError("method='swap' needs the rows: tallies are compared by 'z'")
    first.refuse_other(second, "cannot be compared")
    return dict(zip(names, (first, second), strict=True))


def _predictions(name: str, probs: object, labels: object, facts: Facts) -> Predictions:
    try:
        data = admitted("compare", probs, labels, facts, takes=ROWS | {"by"})
        refuse_few_blocks("compare", data)
        return data
    except InvalidPredictionsError as error:
        raise InvalidPredictionsError(f"model {name}: {error}", error.remedies) from None


def _same_rows(
    probs: Mapping[str, object], labels: object, facts: Facts, remedy: str = ""
) -> dict[str, Predictions]:
    """Read models of the same observations, by ids in one order; one may tell the labels of all."""
    probs = {name: opened(model, f"model {name}") for name, model in probs.items()}
    facts = with_ids(list(probs.values()), labels, facts)
    with_labels = [p.labels for p in probs.values() if isinstance(p, Predictions)]
    shared = with_labels[0] if labels is None and with_labels else labels

    def outcomes(model: object) -> object:
        if isinstance(labels, str) or isinstance(model, Predictions):
            return labels
        return None if has_labels(model, shared) else shared

    data = {str(name): _predictions(name, p, outcomes(p), facts) for name, p in probs.items()}
    data = match_rows(data)
    (first, a), *others = data.items()
    for name, b in others:
        refuse_unlike((first, name), a, b, remedy)
    return data


def _groups(names: tuple[str, ...], together: set[frozenset[str]]) -> list[tuple[str, ...]]:
    """Return the largest sets in which every pair is together (insert and absorb, Piepho 2004)."""
    sets = [frozenset(names)]
    for a, b in combinations(names, 2):
        if frozenset((a, b)) in together:
            continue
        split = [part for s in sets for part in ((s - {a}, s - {b}) if {a, b} <= s else (s,))]
        # A set within another says nothing more: absorb it.
        sets = [
            s for j, s in enumerate(split) if not any(s < t for t in split) and s not in split[:j]
        ]
    ordered = [tuple(name for name in names if name in s) for s in sets]
    return sorted(ordered, key=lambda group: [names.index(name) for name in group])
