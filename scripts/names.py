"""Write ``docs/names.md``: every public name, every word in them, and what each word means.

Constructors, arguments and attributes are collected from the code; the meanings are here, one for
each word. A word without a meaning, or a meaning without a word, is an error. Run from the root of
the repository: ``python scripts/names.py``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import caltest as ct
from caltest._base.written import name_of

PAGE = Path(__file__).parents[1] / "docs" / "names.md"
#: Up to this many users of a word are named one by one.
NAMED = 4
#: Kinds that come out of calls.
NOT_CALLED = ("results", "rows of results", "parts of a statistic")
FACTORIES = (ct.SCE, ct.TACE, ct.Spiegelhalter)
PRESETS = (
    *(ct.presets.guo2017, ct.presets.nixon2019, ct.presets.calzone, ct.presets.sklearn),
    *(ct.presets.torchmetrics, ct.presets.netcal, ct.presets.verified_calibration),
    *(ct.presets.relplot, ct.presets.calibrationerrors_jl, ct.presets.helm),
    *(ct.presets.hle, ct.presets.monai),
)

MEANINGS = {
    "accuracy": "How often the top class was right.",
    "adjust": 'How p-values are adjusted for the number of rows: `"holm"` or `"max-T"`.',
    "adjusted": "p-values that allow for the number of tests.",
    "against": "Another model, with which one is compared.",
    "aggregate": "How the errors of the classes become one: their mean, or the largest.",
    "alarm": "The row, counted from 1, at which a monitor rang first.",
    "alarm_at": "The logarithm of the evidence at which a monitor rings.",
    "alpha": "The chance of a false alarm that is accepted.",
    "alternative": "What is true of a model, as a function of its predictions; of grades, a side.",
    "also": "More statistics, of which a report tests each.",
    "at_least": "How far outcome and prediction are from each other somewhere, at the least.",
    "at_most": "How far outcome and prediction are from each other anywhere, at the most.",
    "aspect": "What a row of an audit is: a binned error, all classes, without bins, or a score.",
    "audit": "The audit that a report begins with.",
    "axes": "Which axes of the simplex a grid cuts.",
    "balanced": "Whether right and wrong answers weigh alike in total.",
    "band": "What the bars or the band of a picture show, and how they are found.",
    "bandwidth": "The width of a kernel, or the rule for it.",
    "between": "The predictions that are looked at.",
    "bias": "What noise adds to the error that is there, by the bootstrap.",
    "bin_high": "The upper end of a bin.",
    "bin_low": "The lower end of a bin.",
    "binning": "Which of two partitions the other program uses.",
    "bins": "The partition, or the number of its bins.",
    "block_size": "Rows of a block within which pairs are formed.",
    "bound": "What no score difference of a row exceeds.",
    "by": "The subgroup of each row.",
    "c": "The class that a lens looks at.",
    "cell": "The number of a bin, as the binning numbers them.",
    "cells": "The rows by their cells, a `Cells`.",
    "bin_size": "Rows in a bin of the other program.",
    "centre": "From where a two-sided value is measured.",
    "change": "Whether the question is if the model has become miscalibrated.",
    "checks": "What a gate has checked.",
    "class_index": "The class that the other program looks at; none for the top class.",
    "classes": "The values of the labels, in the order of the columns.",
    "closed": "To which bin an edge belongs: the one below it, where it is closed on the right.",
    "clusters": "The cluster of each row: rows of one may depend on each other.",
    "combine": "How the terms of the cells become one number.",
    "component": "Which induced class a bin of a curve is about.",
    "concordance": "The c-statistic, or area under the ROC curve.",
    "confidence": "The mean probability of the top class.",
    "contains_zero": "Whether the data are compatible with calibration, at this level.",
    "corrected": "The estimate less its bias.",
    "copies": "Rows that repeat another, more often than by chance.",
    "count": "Rows in a bin or a leaf.",
    "count_a": "Rows of the first model in a bin.",
    "count_b": "Rows of the second model in a bin.",
    "counts": "Rows in every cell.",
    "covariance": "The covariance of intercept and slope.",
    "critical": "The error below which a row passes as noise.",
    "crosses": "Whether a band crosses itself, so that no increasing curve is within.",
    "curve": "The smoother: local lines, or the local parabolas of R's loess.",
    "data": "The predictions, as `Predictions`.",
    "degree": "The degree of a statistic in the residuals.",
    "delta": "How far apart the points are at which a smooth curve is fitted.",
    "degenerate": "Whether a calibrated model can show one value of the statistic only.",
    "detail": "What else should be known of a row of an audit, in a sentence.",
    "deviation": "Outcome minus prediction.",
    "df": "Degrees of freedom of the limit law.",
    "dialect": "The database that a query is for.",
    "difference": "That of the first model minus that of the second.",
    "direction": "Over- or underconfident, or mixed.",
    "discrimination": "What the ranking of the predictions is worth, in a score.",
    "dependence": "λ, how strongly redrawn labels of one cluster depend on each other.",
    "distance": "The distance between frequencies and mean prediction of a cell.",
    "draws": "How often one row of every cluster is drawn.",
    "early_stop": "Whether a simulation ends once its p-value is clearly large.",
    "effective_n": "Rows of equal weight that would tell as much.",
    "drop_missing": "Whether rows with empty cells are left out.",
    "edges": "The inner edges of the bins.",
    "ended": "How a simulation ended: complete, early or interrupted.",
    "equal_intervals": "Whether bins have equal width rather than equal mass.",
    "equivalent": "Whether the error is shown to be smaller than the margin.",
    "estimand": "Which error of new data a statistic estimates.",
    "estimate": "The statistic of the observed data.",
    "estimate_a": "The estimate of the first model.",
    "estimate_b": "The estimate of the second model.",
    "estimator": "Which estimate of the same error is taken.",
    "events": "How many observations had the event, or the column that says so.",
    "every": "Rows from one point of a history to the next.",
    "evidence": "What betting against a hypothesis has made of 1.",
    "exact_pvalue": "The p-value by the binomial law, or by that of a sum of them.",
    "excess": "The estimate minus the null mean.",
    "factor": "What the size of an error is multiplied by.",
    "features": "Random waves that stand for a kernel.",
    "finding": "The verdict of a comparison in words, with the names of the models.",
    "findings": "The findings of all pairs.",
    "fit": "The curve without bins: which kind, or the fitted one.",
    "fitted": "The height of a curve without bins.",
    "folds": "Parts of the rows; each is recalibrated by the others.",
    "format": "What kind of file it is.",
    "from_logits": "Whether the softmax is still to be applied.",
    "gain": "The logarithm of the evidence a row, in nats.",
    "grades": "The tests of the grades, one a row.",
    "grid": "Cells of equal width that a tally is made of.",
    "groups": "Classes that are taken together by a lens.",
    "height": "By how much an event is more frequent than predicted.",
    "headline": "The verdict in the words of a heading.",
    "high": "The upper end of an interval, a bar or a band.",
    "highest": "The largest logarithm of the evidence so far.",
    "history": "What a monitor showed after some of the rows.",
    "horizon": "How many rows, or times, ahead forecasts are made.",
    "hypothesis": "What a p-value is of, in words.",
    "ids": "The name of each row.",
    "impossible": "Observed labels of predicted probability 0: the rows, in results their number.",
    "indistinguishable": "The largest sets of models of which no two can be told apart.",
    "induced": "Whether a lens made these predictions, so that class 0 of two is the event.",
    "intercept": "Of a logistic regression of the outcomes on the log-odds.",
    "intercept_interval": "The interval of the intercept.",
    "intercept_se": "The standard error of the intercept.",
    "interval": "The interval of a frequency.",
    "interval_a": "The interval of the first model's own error.",
    "interval_b": "The interval of the second model's own error.",
    "is_consistency": "Whether bars hold what a calibrated model would show, not the truth.",
    "jeffreys_pvalue": "The p-value by Jeffreys' prior.",
    "k": "How many of the largest predictions a lens keeps.",
    "kernel": "How alike two predictions are.",
    "key": "The numbers of the occupied micro-cells.",
    "label": "The name of the column of labels.",
    "labels": "The observed classes.",
    "labels_b": "The labels of the second model, where it was tried on other rows.",
    "largest": "The end of the range of an error.",
    "leader": "What the expert says that has earned most.",
    "lens": "Which aspect of calibration is asked about.",
    "lenses": "What several tallies look at.",
    "level": "How often intervals, bars and bands hold what they are for.",
    "like": "What the rows to come are like.",
    "limit": "What an error is to lie below: a tolerance or a margin.",
    "limits": "The fewest rows of a node that is split, and of its parts.",
    "loss": "Which norm or proper loss recalibration is judged by.",
    "log_evidence": "The logarithm of the evidence.",
    "log_oe": "The logarithm of the ratio of observed to expected events.",
    "logs": "The logarithms of both evidences.",
    "low": "The lower end of an interval, a bar or a band.",
    "lr": "Likelihood ratio of intercept 0 and slope 1 against both free.",
    "lr_intercept": "Likelihood ratio of intercept 0, given slope 1.",
    "lr_intercept_pvalue": "The p-value of `lr_intercept`.",
    "lr_pvalue": "The p-value of `lr`.",
    "lr_slope": "Likelihood ratio of slope 1, with the intercept free.",
    "lr_slope_pvalue": "The p-value of `lr_slope`.",
    "margin": "An error, or a difference, that does not matter.",
    "mass": "The total weight of the rows, of each cell or of all.",
    "mean_a": "The mean score of the first model.",
    "mean_b": "The mean score of the second model.",
    "mean_score": "The mean of a proper score.",
    "members": "The tallies of the same rows, one for each lens.",
    "method": "How an interval, a comparison or a test of grades is computed.",
    "metric": "Which error of the other program.",
    "min_size": "The fewest rows of a cell of a tree.",
    "miscalibration": "What recalibration would gain, in a score.",
    "more": "Rows that are needed beside those that are there.",
    "n": "Number of observations, or the column that says so.",
    "n_bins": "Number of bins along an axis.",
    "n_cells": "Number of occupied cells.",
    "n_classes": "Number of classes, K; in results before the lens.",
    "n_clusters": "Number of clusters.",
    "n_datasets": "Data sets that are simulated.",
    "n_induced": "Number of classes after the lens.",
    "n_resamples": "Replicates of what is simulated.",
    "name": "What the event of a curve is called.",
    "models": "Predictions of several models for the same rows, by name.",
    "names": "What models, grades or the components of a picture are called.",
    "norm": "The power of the gaps that are averaged, or their maximum.",
    "enough": "Surprising outcomes that have to be expected for the limit law to hold.",
    "notes": "What was done to the input, and what else should be known.",
    "null": "What stands for a calibrated model: a law by name, or a scheme.",
    "null_distribution": "The law of the statistic when the model is calibrated.",
    "null_mean": "The mean of the statistic when the model is calibrated: the noise floor.",
    "null_std": "The standard deviation of the statistic when the model is calibrated.",
    "observed": "Frequency of the outcome in a bin.",
    "of_row": "The cell of every row.",
    "offset_intercept": "The intercept, given slope 1.",
    "offset_intercept_interval": "The interval of `offset_intercept`.",
    "offset_intercept_se": "The standard error of `offset_intercept`.",
    "order": "The rows in the order of their cells.",
    "outside": "Which bars miss what they should hold.",
    "past": "The numbers behind a history, as bytes.",
    "paired": "Whether the rows of both models are the same observations.",
    "pairs": "What is asked together: (statistic, lens), or all pairs of models.",
    "paragraph": "What to paste into a paper.",
    "path": "The file.",
    "paths": "Files, patterns of names, or several of them.",
    "penalty": "How strongly a map is drawn to one that changes nothing.",
    "per_character": "Whether log-likelihoods are divided by the lengths of the options.",
    "points": "At how many predictions a smooth curve is drawn.",
    "portfolio": "The test of all grades together.",
    "pos_label": "The label whose probability a single column is.",
    "power": "Share of data sets in which what is there is found.",
    "predicted": "Mean prediction in a bin.",
    "predicted_label": "The name of the column of predicted classes.",
    "present": "Rows that are there.",
    "probability": "The predicted probability of a grade, or the column that holds it.",
    "probs": "The predicted probabilities, or the names of their columns in a file.",
    "probs_a": "The probabilities of the first model.",
    "probs_b": "The probabilities of the second model.",
    "profile": "For whom a report is: its parts, their order and words.",
    "provenance": "The recalibrations that predictions went through.",
    "purpose": "What is planned.",
    "pvalue": "How often a calibrated model, or equal models, would show as much.",
    "pvalue_a": "The p-value of the first model's own test.",
    "pvalue_b": "The p-value of the second model's own test.",
    "pvalue_bracket": "Between which numbers the p-value lies.",
    "pvalue_error": "The Monte Carlo standard error of the p-value.",
    "question": "What a row of an audit asks, in words.",
    "rank": "A key that sorts the strongest evidence first.",
    "rate": "How often an event happens.",
    "recalibrated": "Predictions for the same rows after recalibration on others.",
    "recalibration": "How probabilities are recalibrated before they are compared.",
    "recipe": "One line that says how a number was made.",
    "recipes": "The recipes of all numbers of a report.",
    "rejected": "The grades whose probability is rejected.",
    "rejects": "Whether calibration is rejected.",
    "relative": "Whether the value is divided by that of a constant prediction.",
    "reliability": "Miscalibration between cells, in the Brier score.",
    "remarks": "What was done to the rows on the way in, and whether a run was interrupted.",
    "reproduce": "The versions and settings with which numbers come again.",
    "residuals": "Outcomes minus probabilities, by class.",
    "resolution": "How much the cells differ in what happens.",
    "resume": "A file that keeps what has been counted.",
    "rng": "The seed, or a generator.",
    "root": "Whether the number is the square root of what is added up.",
    "rows": "The questions of an audit, or how many rows would tell.",
    "rows_per_cell": "Rows in an occupied cell, on average.",
    "run_length": "Rows to a false alarm, on average.",
    "scaled": "Whether the value is divided by its standard deviation.",
    "scales": "The partitions, from coarse to fine.",
    "scheduler": "The workers of Dask that read files.",
    "sample": "A uniform sample of the rows.",
    "scheme": "A way to draw data like the observed ones.",
    "score": "Which proper score.",
    "scores": "The differences of two models in proper scores.",
    "sections": "The parts of a report, with their results.",
    "seed": "The seed, where there was one.",
    "shift": "By how much log-odds are higher than predicted.",
    "shown": "Observed and expected values, as they are printed.",
    "shown_band": "The bars in words.",
    "shown_floor": "The noise floor, as it is printed.",
    "shown_p": "The p-value, as it is printed.",
    "side": "Which of the two bounds.",
    "significant": "Which cells deviate more than chance allows.",
    "simultaneous": "Whether the level is for all bars together.",
    "sites": "The sites, such as hospitals.",
    "size": "How large: which gaps an error is made of, or the partitions of a sensitivity.",
    "slope": "Of a logistic regression of the outcomes on the log-odds; below 1: too extreme.",
    "slope_interval": "The interval of the slope.",
    "slope_se": "The standard error of the slope.",
    "smallest_tolerance": "The smallest tolerance that equivalence tests accept: an upper bound.",
    "source": "The paper or program whose number it is.",
    "span": "Share of the rows in the window of a smooth curve.",
    "split": "Where an axis is cut.",
    "spread": "The histogram of the predictions.",
    "squared": "Whether the gap counts as its square.",
    "squares": "The sum of squared deviations of score differences from the mean before them.",
    "starts": "Where each cell starts.",
    "state": "The wealth of all experts, as bytes.",
    "statistic": "How the error is measured.",
    "steps": "Rows, or times, that a monitor has seen.",
    "stop": "What ends a simulation early, or the splitting of a tree.",
    "strata": "The different weights of a tally.",
    "strategy": "Whether bins have equal width or equal mass.",
    "stratum": "Which of the weights a micro-cell is about.",
    "subgroups": "What was found in every subgroup of the rows, or the rows of each.",
    "subject": "What is looked at: an event, the top class, ranks, all classes, the vector.",
    "summary": "The verdict of an audit in sentences.",
    "sums": "Sums over micro-cells.",
    "table": "A table of counts, or the name of one of rows in a database.",
    "task": "Whether two columns are two classes of many, or an event.",
    "term": "What a cell adds when that many of its rows have the event.",
    "test": "The test that goes with a number or a picture.",
    "test_a": "The first model's own test.",
    "test_b": "The second model's own test.",
    "tested": "The statistic whose difference is tested.",
    "tests": "The tests, one by one.",
    "threshold": "Predictions up to here are left out.",
    "time": "The time of a row, or of the last.",
    "tolerance": "The largest error that can be lived with.",
    "tone": "The colour of a verdict.",
    "total": "The sum of the score differences.",
    "totals": "Sums over all rows.",
    "two_sided": "Whether small values speak against calibration as well as large ones.",
    "uncertainty": "The score of the best constant prediction.",
    "unexamined": "What was not examined, and why.",
    "unit": "The step of a term from one count to the next.",
    "variance": "Which variance standardises a gap.",
    "variant": "Which of two codes is reproduced.",
    "verdict": "What was found, as a code that equals its words.",
    "verdicts": "The verdicts of all pairs.",
    "version": "The version of caltest.",
    "weights": "How much each row counts.",
    "width": "The length of an interval.",
    "within_covariance": "How much of the spread within cells is right.",
    "within_variance": "Spread of the predictions within cells.",
    "workers": "Threads, or a function like `map`.",
    "worst": "Of the several tests of a row of an audit, the one that is shown.",
}

HEAD = """# Names

Each word means one thing, wherever it stands. This page is written by `scripts/names.py`, which
fails when a word has no meaning.

## What other libraries call it

| scikit-learn, SciPy, statsmodels | here |
|---|---|
| `y_true, y_prob` | `probs, labels`: the reverse order; swapped arguments are refused |
| `sample_weight` | `weights` |
| `groups` of a splitter, `cluster` of a covariance | `clusters` |
| `pos_label` | `pos_label`, for one column of probabilities; `classes` for one column a class |
| `alternative` | statistics are one- or two-sided by what they are; grades have an `alternative` |
| `n_bins` | `bins`: a number, or a binning such as `QuantileBins(10)` |
| `strategy="uniform"`, `"quantile"` | `UniformBins`, `QuantileBins` |
| `statistic`, `pvalue` of a result | `estimate`, `pvalue`; `statistic` is what was asked for |
| `confidence_level`, `alpha=0.05` of an interval | `level=0.95` |
| `n_permutations`, `n_boot` | `n_resamples` |
| `random_state`, `seed` | `rng` |
| `n_jobs` | `workers` |

## Factors between conventions

Distances by name are between whole probability vectors, so that each gap of two classes counts in
both components. Errors that are named after a paper look at the event alone.

| for two classes | is | times |
|---|--:|---|
| `ECE(bins, distance="l1")` | 2 | `ECE(bins)` |
| `ECE(bins, distance="l2")` | √2 | `ECE(bins)` |
| `ECE(bins, distance="max")` | 1 | `ECE(bins)` |
| `ECE(bins, distance="sqeuclidean")` | 2 | `RMSCE(bins)²` |
| what `ECE(bins, distance="sqeuclidean")` estimates | 2 | what `DebiasedL2(bins)` estimates |
| `SKCE(TVKernel(0.4), estimator="biased")` | 2 | `MMCE()²` |
| the distance in `LaplaceKernel` and `GaussianKernel` | √2 | the distance in `TVKernel` |
| `BrierScore()`, (p − y)² | ½ | Σ_k (p_k − 1{y = k})², which it is for more classes |

## Words

"""


CALLS = """
## How things are called

`**facts` are the keywords of `Predictions.of`. Arguments after `*` are given by name.
"""


def subclasses(kind: type) -> list[Any]:
    """Return the public classes of a kind."""
    values = (getattr(ct, name) for name in sorted(ct.__all__, key=str.lower))
    return [v for v in values if inspect.isclass(v) and issubclass(v, kind) and v is not kind]


def verbs() -> list[Any]:
    """Return the public functions that are no factories of statistics."""
    values = (getattr(ct, name) for name in sorted(ct.__all__))
    return [v for v in values if inspect.isfunction(v) and v not in FACTORIES]


def kinds() -> dict[str, list[Any]]:
    """Return what is public, by kind: (plural) names of kinds to classes and functions."""
    from caltest.results import Result

    schemes = [v for v in subclasses(ct.Scheme) if not inspect.isabstract(v)]
    recalibration = [getattr(ct.recalibration, name) for name in ct.recalibration.__all__]
    methods = [v for v in recalibration if inspect.isclass(v) and is_dataclass(v)]
    return {
        "verbs": verbs(),
        "monitors": [ct.Monitor, ct.ComparisonMonitor],
        "tallies": [ct.Tally, ct.Tallies],
        "data": [ct.Predictions.of, ct.Predictions],
        "lenses": subclasses(ct.Lens),
        "binnings": [
            *(ct.UniformBins, ct.QuantileBins, ct.EdgeBins, ct.VarianceTree, ct.SimplexGrid),
        ],
        "statistics": sorted((*subclasses(ct.Statistic), *FACTORIES), key=lambda v: v.__name__),
        "kernels": [ct.LaplaceKernel, ct.GaussianKernel, ct.TVKernel],
        "schemes": schemes,
        "recalibrations": [m for m in methods if issubclass(m, ct.recalibration.Recalibration)],
        "alternatives": [ct.planning.Slope, ct.planning.Shift, ct.planning.Bump],
        "models": [ct.planning.LogisticNormal],
        "presets": [*PRESETS, ct.presets.Preset],
        "results": [v for v in subclasses(Result) if v not in (ct.Monitor, ct.ComparisonMonitor)],
        "rows of results": [ct.AuditRow, ct.GateCheck, ct.GradeTest, ct.ScoreDifference],
        "parts of a statistic": [ct.Prepared, ct.Cells, ct.CellLaw, ct.Estimand],
    }


def parameters(value: Any) -> list[inspect.Parameter]:
    """Return the parameters of a constructor or a function."""
    return list(inspect.signature(value).parameters.values())


def words_of(value: Any) -> set[str]:
    """Return the arguments, fields and properties of a class or function."""
    words = {p.name for p in parameters(value) if p.kind is not p.VAR_KEYWORD}
    if inspect.isclass(value):
        words |= {f.name for f in fields(value)} if is_dataclass(value) else set()
        members = inspect.getmembers(value, lambda m: isinstance(m, property) or _cached(m))
        words |= {name for name, _ in members}
    return {word for word in words if not word.startswith("_")}


def _cached(member: Any) -> bool:
    return type(member).__name__ == "cached_property"


def collected() -> dict[str, dict[str, list[str]]]:
    """Return every word with the names that use it, by kind."""
    found: dict[str, dict[str, list[str]]] = {}
    for kind, values in kinds().items():
        for value in values:
            for word in words_of(value):
                found.setdefault(word, {}).setdefault(kind, []).append(value.__qualname__)
    return found


def where(users: dict[str, list[str]], sizes: dict[str, int]) -> str:
    """Return who uses a word: by name, or by kind where they are many."""
    parts = []
    for kind, names in users.items():
        if len(names) == sizes[kind] > 2:
            parts.append(f"all {kind}")
        elif len(names) > NAMED:
            parts.append(f"{len(names)} {kind}")
        else:
            parts.append(", ".join(f"`{name}`" for name in names))
    return ", ".join(parts)


def signature(value: Any) -> str:
    """Return how a constructor or function is called, without annotations."""
    shown, keyword_only = [], False
    for p in parameters(value):
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            shown.append("*")
        stars = "**" if p.kind is p.VAR_KEYWORD else ""
        default = "" if p.default is p.empty else f"={_written(p.default)}"
        shown.append(f"{stars}{p.name}{default}")
    return f"{value.__qualname__}({', '.join(shown)})"


def _written(default: Any) -> str:
    return f"{default:.3g}" if isinstance(default, float) else name_of(default)


def summary(value: Any) -> str:
    """Return the first line of a docstring, fit for a table."""
    line = (inspect.getdoc(value) or "").partition("\n")[0]
    return re.sub(r":\w+:(?=`)", "", line).replace("``", "`").replace("|", "\\|")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def page() -> str:
    """Return the page.

    Raises
    ------
    ValueError
        When a word has no meaning, or a meaning no word.
    """
    found, members = collected(), kinds()
    without, unused = sorted(set(found) - set(MEANINGS)), sorted(set(MEANINGS) - set(found))
    if without or unused:
        raise ValueError(f"words without a meaning: {without}; meanings without a word: {unused}")
    sizes = {kind: len(values) for kind, values in members.items()}
    rows = [(f"`{word}`", MEANINGS[word], where(found[word], sizes)) for word in sorted(found)]
    parts = [HEAD, table(("word", "means", "used by"), rows), CALLS]
    for kind, values in members.items():
        if kind not in NOT_CALLED:
            calls = [(f"`{signature(value)}`", summary(value)) for value in values]
            parts += [f"\n### {kind.capitalize()}\n\n", table(("call", "is"), calls)]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
