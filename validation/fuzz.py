"""Random calls of verbs, options and data: each ends in an answer or an error of caltest.

``python -m validation.fuzz --minutes 15 --resume DIR`` goes on with the call at which the last run
stopped, and keeps its counts in ``DIR``; ``--call 1234`` makes one call and shows its traceback.
``python -m validation.reliability`` writes the page. Every call has its own stream, so that it is
the same call whichever run makes it.

A call falls if it ends in any exception but ``InvalidPredictionsError`` and ``StatisticError``, if
a warning is not one of caltest, if an answer breaks a promise (:func:`promises`), if global state
or the arrays that were passed are changed, or if the same call on the same rows answers otherwise:
with the same seed, with two workers, from another form of input, or with its rows in another order.
"""

from __future__ import annotations

import argparse
import json
import locale
import os
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import caltest as ct
from caltest import errors
from caltest.planning import Slope
from validation.study import MEASURED

SEED = 20261128
#: Calls after which the counts are written.
PART = 100
ERRORS = (ct.InvalidPredictionsError, ct.StatisticError)
OURS = tuple(v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, Warning))


# ------------------------------------------------------------------------------
# Data: predictions, labels and facts of rows, from ordinary to hostile.


@dataclass
class Data:
    """Arrays of one call; ``facts`` are named as in ``Predictions.of``."""

    probs: Any
    labels: Any
    facts: dict[str, Any] = field(default_factory=dict)
    hostile: bool = False

    def taken(self, order: np.ndarray) -> Data:
        """Return the rows in another order."""
        facts = {name: np.asarray(value)[order] for name, value in self.facts.items()}
        return Data(self.probs[order], self.labels[order], facts, self.hostile)


SIZES = (1, 2, 3, 7, 20, 60, 200)


def column(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n probabilities of one of many kinds."""
    match rng.integers(9):
        case 0:
            return rng.random(n)
        case 1:
            return rng.beta(*np.exp(rng.uniform(-3, 3, 2)), n)
        case 2:
            return np.round(rng.random(n), int(rng.integers(1, 4)))
        case 3:
            return np.full(n, rng.random())
        case 4:
            return rng.choice([0.0, 1.0, 0.5, 1e-300, 1.0 - 1e-16, 1e-9], n)
        case 5:
            return 1.0 / (1.0 + np.exp(-rng.normal(0.0, 30.0, n)))
        case 6:
            return rng.random(n).astype(np.float32)
        case 7:
            return rng.choice(np.linspace(0.0, 1.0, 16), n)  # edges of bins
        case _:
            return np.clip(rng.random(n) * 10.0 ** -rng.integers(1, 12), 0.0, 1.0)


def table(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return n rows of k probabilities."""
    rows = rng.dirichlet(np.full(k, np.exp(rng.uniform(-4.0, 3.0))), n)
    if rng.random() < 0.2:
        rows = np.round(rows, 3)
        rows[:, -1] = np.maximum(1.0 - rows[:, :-1].sum(axis=1), 0.0)
        rows /= rows.sum(axis=1, keepdims=True)
    return rows.astype(np.float32) if rng.random() < 0.1 else rows


def spoiled(values: np.ndarray, rng: np.random.Generator) -> Any:
    """Return an array with something in it that nobody can take, or of another kind."""
    values = values.copy()
    if not values.size or rng.random() < 0.2:
        kinds = [values.tolist(), values.astype(str), values.astype(object), values[..., None]]
        kinds += [values[:-1], None, "p", 0.5, [], [[]], values.astype(complex), values * 100.0]
        return kinds[rng.integers(len(kinds))]
    bad = [np.nan, np.inf, -np.inf, -0.1, 1.0000001, 2.0, -1e-17, 1e308, -0.0]
    with np.errstate(all="ignore"):
        values.flat[rng.integers(values.size)] = bad[rng.integers(len(bad))]
    return values


def facts_of(n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return facts of rows: mostly none."""
    facts: dict[str, Any] = {}
    if rng.random() < 0.25:
        kinds = [
            np.ones(n), rng.random(n) + 0.1, rng.integers(0, 4, n), 10.0 ** rng.uniform(-9, 9, n),
            np.where(rng.random(n) < 0.5, 0.0, 1.0),
        ]  # fmt: skip
        facts["weights"] = kinds[rng.integers(len(kinds))]
    if rng.random() < 0.2:
        facts["clusters"] = rng.integers(0, max(1, n // int(rng.integers(1, 9))), n)
    if rng.random() < 0.15:
        facts["by"] = np.array(["a", "b", "ü c"])[rng.integers(0, 3, n)]
    if rng.random() < 0.1:
        facts["folds"] = rng.integers(0, int(rng.integers(1, 6)), n)
    return facts


def data_of(rng: np.random.Generator) -> Data:
    """Return the data of a call; one in four is hostile."""
    n = int(rng.choice(SIZES))
    k = 2 if rng.random() < 0.6 else int(rng.choice([3, 4, 10]))
    if k == 2 and rng.random() < 0.8:
        probs = column(n, rng)
        truth = np.clip(probs.astype(float) ** rng.choice([1.0, 1.0, 0.4, 3.0]), 0.0, 1.0)
        labels: np.ndarray = (rng.random(n) < truth).astype(int)
    else:
        probs = table(n, k, rng)
        labels = (rng.random((n, 1)) > np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1)
    if rng.random() < 0.1:
        labels = np.full(n, labels[0])
    if rng.random() < 0.2:
        labels = labels.astype(rng.choice(["float64", "int8", "uint64"] + ["bool"] * (k == 2)))
    data = Data(probs, labels, facts_of(n, rng))
    if rng.random() < 0.25:
        data.hostile = True
        match rng.integers(3):
            case 0:
                data.probs = spoiled(data.probs, rng)
            case 1:
                data.labels = spoiled(data.labels.astype(float), rng)
            case _:
                name = str(rng.choice(["weights", "clusters", "by", "folds"]))
                data.facts[name] = spoiled(rng.random(n), rng)
    return data


# ------------------------------------------------------------------------------
# Calls: a verb with options.


def statistics(rng: np.random.Generator) -> Any:
    """Return a statistic with options of its own."""
    bins = [ct.UniformBins(15), ct.QuantileBins(5), int(rng.integers(1, 30)), ct.UniformBins(1)]
    chosen = bins[rng.integers(len(bins))]
    kinds: list[Callable[[], Any]] = [
        lambda: ct.ECE(chosen, distance=str(rng.choice(["tv", "l2", "max", "sqeuclidean"]))),
        lambda: ct.DebiasedL2(chosen), ct.Kuiper, ct.CoxScore, ct.SmoothECE, ct.MultiScale,
        ct.BrierScore, ct.LogScore, ct.ICI, ct.SKCE, ct.CalibrationInTheLarge, ct.HosmerLemeshow,
        ct.ScoreGap, ct.MulticlassCox, ct.WorstClass,
    ]  # fmt: skip
    return kinds[rng.integers(len(kinds))]()


def lens_of(rng: np.random.Generator) -> Any:
    """Return a lens, mostly the usual one."""
    lenses = [ct.TopK(1), ct.TopK(2), ct.OneVsRest(0), ct.OneVsRest(1), ct.Canonical()]
    lenses += [ct.Partition([[0, 1], [2]]), ct.Pairwise(0, 1)] if hasattr(ct, "Pairwise") else []
    return None if rng.random() < 0.5 else lenses[rng.integers(len(lenses))]


def call_of(rng: np.random.Generator) -> tuple[str, Callable[..., Any]]:
    """Return a verb's name and a call that takes :class:`Data` and further options."""
    statistic, lens = statistics(rng), lens_of(rng)
    few: dict[str, Any] = {"n_resamples": int(rng.choice([39, 99])), "rng": int(rng.integers(9))}
    level = float(rng.choice([0.5, 0.9, 0.95, 0.99, 1.0 - 1e-12]))
    other = float(rng.choice([0.5, 1.0, 2.0]))
    null = rng.choice(["auto", "exact", "asymptotic", "auto"])

    def two(data: Data) -> Any:
        with np.errstate(all="ignore"):
            values = np.asarray(data.probs)
            values = values.real if values.dtype.kind == "c" else values
            p = values.astype(float) ** other
            return p if p.ndim < 2 else p / p.sum(axis=1, keepdims=True)

    calls: dict[str, Callable[..., Any]] = {
        "calibration_test": lambda d, **o: ct.calibration_test(
            d.probs, d.labels, statistic, lens=lens,
            # up to 2²⁰ label vectors are listed where they are asked for, which takes minutes
            null="auto" if null == "exact" and np.size(d.labels) > 7 else str(null),
            **few, **d.facts, **o,
        ),
        "confidence_interval": lambda d, **o: ct.confidence_interval(
            d.probs, d.labels, statistic, lens=lens, level=min(level, 0.9), **few, **d.facts, **o
        ),
        "confidence_interval at any level": lambda d, **o: ct.confidence_interval(
            d.probs, d.labels, lens=lens, level=level, **few, **d.facts, **o
        ),
        "audit": lambda d, **o: ct.audit(
            d.probs, d.labels, **few | {"n_resamples": 199}, **d.facts, **o
        ),
        "compare": lambda d, **o: ct.compare(
            d.probs, two(d), d.labels, lens=lens, **few, **d.facts, **o
        ),
        "reliability_curve": lambda d, **o: ct.reliability_curve(
            d.probs, d.labels, lens=lens, **few, **d.facts, **o
        ),
        "reliability_fit": lambda d, **o: ct.reliability_fit(
            d.probs, d.labels, lens=lens, **few, **d.facts, **o
        ),
        "segment_search": lambda d, **o: ct.segment_search(
            d.probs, d.labels, {"x": np.arange(np.size(d.labels)) % 7}, lens=lens, min_rows=5,
            **few, **d.facts, **o,
        ),
        "cox_recalibration": lambda d: ct.cox_recalibration(
            d.probs, d.labels, lens=lens, level=level, **d.facts
        ),
        "equivalence_test": lambda d, **o: ct.equivalence_test(
            d.probs, d.labels, tolerance=0.1, lens=lens, **few, **d.facts, **o
        ),
        "gate": lambda d: ct.gate(d.probs, d.labels, tolerance=0.1, lens=lens, **few, **d.facts),
        "brier_decomposition": lambda d: ct.brier_decomposition(
            d.probs, d.labels, lens=lens, **d.facts
        ),
        "corp_decomposition": lambda d: ct.corp_decomposition(
            d.probs, d.labels, lens=lens, **d.facts
        ),
        "decision_curve": lambda d: ct.decision_curve(d.probs, d.labels, **d.facts),
        "promise": lambda d: ct.promise(
            d.probs, d.labels, ct.Costs.threshold(0.3), **few, **d.facts
        ),
        "worst_class": lambda d, **o: ct.worst_class(d.probs, d.labels, **few, **d.facts, **o),
        "Monitor": lambda d: ct.Monitor().update(d.probs, d.labels, **d.facts),
        "Tally": lambda d: ct.calibration_test(
            ct.Tally.of(d.probs, d.labels, lens, **d.facts), None, statistic, **few
        ),
        # by formula, which is quick: a search simulates data sets of up to two million rows
        "plan": lambda d: ct.plan(
            d.probs, None, PLANNED[few["rng"] % 3], alternative=Slope(other), width=1 - level / 2,
            rng=few["rng"], **d.facts,
        ) if few["rng"] < 6 else ct.plan(
            d.probs, None, ct.CalibrationInTheLarge(), alternative=Slope(other), **d.facts
        ),
    }  # fmt: skip
    name = str(rng.choice(list(calls)))
    return name, calls[name]


#: What is planned by formula.
PLANNED = ("O:E", "intercept", "slope")

#: Verbs whose calls take workers.
WITH_WORKERS = (
    "calibration_test", "confidence_interval", "audit", "compare", "reliability_curve",
    "segment_search", "equivalence_test",
)  # fmt: skip


# ------------------------------------------------------------------------------
# What every answer promises.


def promises(answer: Any) -> str:
    """Return the promise that an answer breaks, or "": numbers, p-values and limits."""
    stack, rows = [("", answer.as_dict())], 0
    while stack:
        where, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{where}.{key}", inner) for key, inner in value.items()]
            low, high = value.get("low"), value.get("high")
            plain = isinstance(low, float) and isinstance(high, float)
            if plain and not low <= high + 1e-12:
                return f"{where}: low {low} above high {high}"
        elif isinstance(value, list):
            stack += [(where, inner) for inner in value]
        elif where.rsplit(".", 1)[-1] in ("pvalue", "adjusted") and value is not None:
            rows += 1
            if not 0.0 < value <= 1.0:
                return f"{where} is {value}"
    if not str(answer):
        return "it prints nothing"
    type(answer).from_json(answer.to_json())
    return ""


def state() -> tuple[Any, ...]:
    """Return the global state that no call may change."""
    generator = np.random.get_state()  # noqa: NPY002
    return (
        np.geterr(), generator[1].tobytes(), generator[2], len(warnings.filters), os.getcwd(),
        np.get_printoptions()["precision"], locale.setlocale(locale.LC_ALL), sorted(os.environ),
    )  # fmt: skip


def raw(data: Data) -> list[bytes]:
    """Return the bytes of the arrays of a call."""
    arrays = (data.probs, data.labels, *data.facts.values())
    return [a.tobytes() for a in arrays if isinstance(a, np.ndarray) and a.dtype != object]


def same(first: Any, second: Any, tolerance: float = 0.0) -> bool:
    """Tell whether two answers are equal, to the bit or but for rounding."""
    if not tolerance:
        return bool(first.to_json() == second.to_json())
    names = [n for n in ("estimate", "pvalue", "null_mean", "low", "high") if hasattr(first, n)]
    pairs = [(getattr(first, n), getattr(second, n)) for n in names]
    return all(
        np.allclose(np.asarray(a, float), np.asarray(b, float), tolerance, tolerance, True)
        for a, b in pairs
    )


def checked(number: int, seed: int = SEED) -> tuple[str, str, str]:
    """Make a call; return its verb, how it ended, and what fell, or ""."""
    rng = np.random.default_rng([seed, number])  # every call has its own
    data, (verb, call) = data_of(rng), call_of(rng)
    before, bytes_before = state(), raw(data)
    said: list[warnings.WarningMessage] = []
    fell, ended, answer = "", "", None
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            answer = call(data)
        ended = "answered"
    except ERRORS as error:
        ended = type(error).__name__
        fell = "" if str(error).strip() else "an error without words"
    except (TypeError, ValueError) as error:
        # those of the fuzzer's own second model are not of caltest
        inside = traceback.extract_tb(error.__traceback__)[-1].filename
        ended = "not a call" if inside == __file__ else type(error).__name__
        fell = "" if ended == "not a call" else f"{type(error).__name__}: {error}"
    except Exception as error:
        ended, fell = type(error).__name__, f"{type(error).__name__}: {error}"
    strange = [w for w in said if not issubclass(w.category, OURS)]
    if strange and not fell:
        fell = f"warning {strange[0].category.__name__}: {strange[0].message}"
    if not fell and state() != before:
        fell = "global state has changed"
    if not fell and raw(data) != bytes_before:
        fell = "arrays that were passed have changed"
    if not fell and answer is not None and hasattr(answer, "as_dict"):
        fell = promises(answer)
    if not fell and answer is not None and hasattr(answer, "to_json"):
        fell = again(number, verb, call, data, answer, rng)
    return verb, ended, fell


def again(
    number: int, verb: str, call: Callable[..., Any], data: Data, answer: Any,
    rng: np.random.Generator,
) -> str:  # fmt: skip
    """Return what differs when one call in two is made once more, another way in turn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match number % 8:
            case 0:
                return "" if same(answer, call(data)) else "the same seed answers otherwise"
            case 2 if verb in WITH_WORKERS:
                return "" if same(answer, call(data, workers=2)) else "two workers answer otherwise"
            case 4 if isinstance(data.probs, np.ndarray) and not data.hostile:
                p = data.probs.astype(float)
                listed = Data(p.tolist(), data.labels.tolist(), data.facts)
                series = Data(
                    pl.Series(p) if p.ndim == 1 else p, pl.Series(data.labels), data.facts
                )
                plain = call(Data(p, data.labels, data.facts))
                same_forms = same(call(listed), plain) and same(call(series), plain)
                return "" if same_forms else "another form of input answers otherwise"
            case 6 if verb in ("cox_recalibration", "brier_decomposition") and not data.hostile:
                order = rng.permutation(len(data.labels))
                moved = call(data.taken(order))
                return (
                    "" if same(answer, moved, 1e-7) else "another order of rows answers otherwise"
                )
    return ""


# ------------------------------------------------------------------------------
# The run.


def main() -> None:
    """Make calls until the time is over, and keep their counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=15.0, help="CPU minutes of this run.")
    parser.add_argument("--calls", type=int, default=100_000, help="Calls in all.")
    parser.add_argument("--call", type=int, help="Make this call only, and show its traceback.")
    parser.add_argument("--resume", type=Path, default=MEASURED, help="Folder of fuzz.json.")
    o = parser.parse_args()
    if o.call is not None:
        rng = np.random.default_rng([SEED, o.call])
        data, (verb, call) = data_of(rng), call_of(rng)
        print(verb, data)
        print(checked(o.call))
        print(call(data))
        return
    run(o.resume / "fuzz.json", o.calls, o.minutes)


def run(file: Path, calls: int, minutes: float) -> dict[str, Any]:
    """Extend the counts in a file by calls of so many CPU minutes, and return them."""
    empty = {"seed": SEED, "calls": 0, "minutes": 0.0, "verbs": {}, "fell": {}}
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else empty
    start = time.process_time()
    spent = found["minutes"]
    while found["calls"] < calls and time.process_time() - start < 60.0 * minutes:
        for number in range(found["calls"], min(found["calls"] + PART, calls)):
            verb, ended, fell = checked(number)
            counts = Counter(found["verbs"].get(verb, {}))
            counts[ended] += 1
            found["verbs"][verb] = dict(counts)
            if fell:
                found["fell"][str(number)] = f"{verb}: {fell}"[:300]
                print(number, found["fell"][str(number)], flush=True)
            found["calls"] = number + 1
        found["minutes"] = round(spent + (time.process_time() - start) / 60.0, 2)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
        new.replace(file)
    return found


if __name__ == "__main__":
    main()
