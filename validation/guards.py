"""Guards: false alarms on calibrated data of ordinary kinds, and power on misread data.

``python -m validation.guards`` writes ``docs/guards.md``; ``--quick`` is a small version that
prints. Either fails when a guard asks about calibrated data of a kind more often than in 1 of 1000
data sets by more than chance allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

import caltest as ct
from caltest.data import doubts
from caltest.data.questions import Column, Rows
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

#: Guards that ask, those that doubt, and the rate at which a guard may ask about calibrated data.
ASKING = (
    *("train and test", "several predictions of a row", "second set", "predicted class"),
    *("confidences", "against the outcomes", "swapped censoring", "cumulative", "follow-up"),
)
DOUBTING = ("dependent rows",)
LIMIT = 0.001
SIZES = (50, 100, 150, 250, 400)


def size(rng, low=30, high=10_000):
    """Return a number of rows, uniform on the logarithmic scale."""
    return int(np.exp(rng.uniform(np.log(low), np.log(high))))


def events(p, rng):
    return (rng.random(len(p)) < p).astype(int)


def columns(n, rng):
    """Return features of all sorts, none of which knows more of the outcome than p does."""
    return {
        "age": rng.integers(18, 95, n),
        "sex": rng.choice(["female", "male"], n),
        "treated": rng.random(n) < 0.4,
        "region": rng.choice([*"ABCDEFGH"], n, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.04, 0.01]),
        "bmi": np.round(rng.normal(26, 4, n), 1),
        "score": rng.integers(0, 5, n),
        "postcode": rng.integers(10_000, 10_300, n),
        "id": np.arange(n),
        "share": rng.random(n),
    }


def labelled(p, y, rng, **more):
    """Return rows beside features and further columns, of which none is named."""
    facts = {name: more.pop(name) for name in ("weights",) if name in more}
    cells = columns(len(y), rng) | more
    unused = tuple(Column.of(name, np.asarray(c)) for name, c in cells.items())
    return Rows(p, y, unused=unused, said={"probs": "p", "label": "y"}, **facts)


def rare(rng):
    p = rng.beta(0.8, 40, size(rng))
    return labelled(p, events(p, rng), rng)


def balanced(rng):
    p = rng.beta(2, 2, size(rng))
    return labelled(p, events(p, rng), rng)


def any_beta(rng):
    p = rng.beta(*np.exp(rng.uniform(-2, 2, 2)), size(rng))
    return labelled(p, events(p, rng), rng)


def certain(rng):
    p = expit(rng.normal(0, 1, size(rng)) * rng.uniform(3, 15))
    return labelled(p, events(p, rng), rng)


def in_percents(rng):
    p = np.round(rng.beta(0.5, 0.5, size(rng)), 2)
    return labelled(p, events(p, rng), rng)


def above_half(rng):
    p = rng.uniform(0.5, 1.0, size(rng))
    return labelled(p, events(p, rng), rng)


def label_twice(rng):
    p = rng.uniform(0.5, 1.0, size(rng))
    y = events(p, rng)
    return labelled(p, y, rng, state=np.array(["alive", "dead"])[y])


def answers(rng):
    """Confidences of answers, whose label says whether the answer was right."""
    p = rng.beta(1, 1, size(rng))
    guess, sure = (p >= 0.5).astype(int), np.maximum(p, 1 - p)
    right = events(sure, rng)
    return labelled(sure, right, rng, answer=np.array(["no", "yes"])[guess])


def no_skill(rng):
    n = size(rng)
    p = np.full(n, rng.uniform(0.05, 0.95)) if rng.random() < 0.5 else rng.uniform(0.45, 0.55, n)
    return labelled(p, events(p, rng), rng)


def no_skill_30(rng):
    p = np.clip(0.5 + rng.normal(0, 0.02, 30), 0, 1)
    return labelled(p, events(p, rng), rng)


def weighted(rng):
    p = rng.beta(1.2, 2, size(rng))
    return labelled(p, events(p, rng), rng, weights=rng.gamma(0.5, 2.0, len(p)) + 1e-6)


def stations(rng, skill=1.0):
    """Outcomes shared by the stations of a day: every day is wet or dry nearly everywhere."""
    days, many = int(rng.integers(20, 300)), int(rng.integers(3, 30))
    level = np.repeat(rng.normal(-0.5, 1.2 * skill + 0.02, days), many)
    p = expit(level + rng.normal(0, 0.3, days * many))
    shared = np.repeat(rng.random(days), many)  # one uniform number a day keeps P(y) = p
    own = rng.random(days * many)
    y = (np.where(rng.random(days * many) < 0.9, shared, own) < p).astype(int)
    day, station = np.repeat(np.arange(days), many), np.tile(np.arange(many), days)
    return labelled(p, y, rng, day=day, station=station)


def stations_no_skill(rng):
    return stations(rng, 0.0)


def persons(rng, base=-0.5, waves=None):
    """Persons with an effect of their own that predictions do not know; p is right on average."""
    m = int(rng.integers(2, 9)) if waves is None else waves
    count = size(rng, 15, 2000)
    person, wave = np.repeat(np.arange(count), m), np.tile(np.arange(m), count)
    p = expit(base + rng.normal(0, 1, count * m))
    common, own = np.repeat(rng.random(count), m), rng.random(count * m)
    y = (np.where(rng.random(count * m) < 0.5, common, own) < p).astype(int)
    return labelled(p, y, rng, person=person, wave=wave)


def panels(rng):
    return persons(rng, waves=int(rng.integers(2, 6)))


def rare_panels(rng):
    return persons(rng, base=-4.0, waves=int(rng.integers(2, 6)))


def folds(rng):
    p = rng.beta(1.2, 2, size(rng))
    n, where = len(p), rng.choice(["test", "validation", "holdout"], len(p))
    fold = rng.integers(0, 5, n)
    return labelled(p, events(p, rng), rng, split=where, fold=fold)


def families(rng):
    k = int(rng.integers(3, 8))
    probs = rng.dirichlet(np.full(k, np.exp(rng.uniform(-1.5, 1))), size(rng))
    y = (probs.cumsum(axis=1) > rng.random((len(probs), 1))).argmax(axis=1)
    return labelled(probs, np.minimum(y, k - 1), rng, predicted=probs.argmax(axis=1))


def censored(rng, n=None, on_p=False, flat=False, swap=False):
    """Return calibrated risks by time 1, and follow-up whose end may depend on the risk."""
    n = size(rng, 60) if n is None else n
    p = np.full(n, 0.35) + rng.normal(0, 0.02, n) if flat else rng.beta(1.2, 2.2, n)
    event = rng.exponential(size=n) / -np.log1p(-np.clip(p, 1e-6, 1 - 1e-6))
    lost = rng.exponential(size=n) / (0.6 * np.exp((2 * p - 1) * 1.5 if on_p else 0.0))
    lost = np.minimum(lost, 1.5)
    seen = (event <= lost) != swap
    return p, ct.Followup(np.minimum(event, lost), seen.astype(int), horizon=1.0)


def followed(rng):
    return censored(rng)


def followed_on_p(rng):
    return censored(rng, on_p=True)


def followed_flat(rng):
    return censored(rng, flat=True)


def followed_flat_on_p(rng):
    return censored(rng, flat=True, on_p=True)


# Misread data of n rows.


def complemented(rng, n):
    p = rng.beta(1.2, 1.8, n)
    return labelled(1 - p, events(p, rng), rng)


def complemented_alone(rng, n):
    p = rng.beta(1.2, 1.8, n)
    return Rows(1 - p, events(p, rng))


def swapped(rng, n):
    return censored(rng, n, swap=True)


def survival(rng, n):
    p, seen = censored(rng, n)
    return 1 - p, seen


def own_class(rng, n):
    p = rng.beta(1.2, 1.8, n)
    return labelled(p, (p >= 0.5).astype(int), rng)


def of_answers(rng, n):
    p = rng.beta(1, 1, n)
    guess = (p >= 0.5).astype(int)
    return labelled(np.maximum(p, 1 - p), events(p, rng), rng, answer=np.array([*"nj"])[guess])


def three_models(rng, n):
    p = rng.beta(1.2, 1.8, n)
    y, many = events(p, rng), expit(np.tile(logit(p), 3) + rng.normal(0, 0.3, 3 * n))
    row, model = np.tile(np.arange(n), 3), np.repeat([*"abc"], n)
    return labelled(many, np.tile(y, 3), rng, row=row, model=model)


def days_of_stations(rng, n):
    days = n // 5
    p = expit(np.repeat(rng.normal(-0.5, 1.2, days), 5) + rng.normal(0, 0.3, 5 * days))
    y = (np.repeat(rng.random(days), 5) < p).astype(int)
    return labelled(p, y, rng, day=np.repeat(np.arange(days), 5))


@dataclass(frozen=True)
class Kind:
    """Data of a kind: what draws it, of n rows if misread, and the guard that then answers."""

    draw: Callable
    n: int = 0
    guard: str = ""
    depends: bool = False

    def __call__(self, rng):
        return self.draw(rng, self.n) if self.n else self.draw(rng)


CALIBRATED = {
    "rare events": Kind(rare),
    "balanced": Kind(balanced),
    "beta of any shape": Kind(any_beta),
    "nearly certain": Kind(certain),
    "whole percents, many 0 and 100": Kind(in_percents),
    "all p ≥ 0.5": Kind(above_half),
    "all p ≥ 0.5, the label once more in words": Kind(label_twice),
    "confidences, with the answers": Kind(answers),
    "no skill": Kind(no_skill),
    "no skill, 30 rows": Kind(no_skill_30),
    "gamma weights": Kind(weighted),
    "stations × days, outcomes shared": Kind(stations, depends=True),
    "stations × days, no skill": Kind(stations_no_skill, depends=True),
    "persons with 2 to 8 rows": Kind(persons, depends=True),
    "panels": Kind(panels, depends=True),
    "panels, rare events": Kind(rare_panels, depends=True),
    "folds and parts without train": Kind(folds),
    "3 to 7 classes, predicted class": Kind(families),
    "follow-up": Kind(followed),
    "follow-up, censoring depends on p": Kind(followed_on_p),
    "follow-up, no skill": Kind(followed_flat),
    "follow-up, no skill, censoring depends on p": Kind(followed_flat_on_p),
}
MISREAD = {
    "1 − p for p": (complemented, "against the outcomes"),
    "1 − p for p, no further columns": (complemented_alone, "against the outcomes"),
    "survival for risk, follow-up": (survival, "against the outcomes"),
    "swapped censoring": (swapped, "swapped censoring"),
    "predicted class for the label": (own_class, "predicted class"),
    "confidence for the probability": (of_answers, "confidences"),
    "three models pooled": (three_models, "several predictions of a row"),
    "days of five stations (doubt)": (days_of_stations, "dependent rows"),
}
DATA = CALIBRATED | {
    f"{name}, n = {n}": Kind(draw, n, guard)
    for name, (draw, guard) in MISREAD.items()
    for n in SIZES
}


def tests(kind):
    return {"guards": kind.guard}


def measure(kind, wanted, rng):
    """Return for every guard whether it raised a question."""
    found = kind(rng)
    if isinstance(found, Rows):
        asked = [*doubts.questions(found)]
        asked += filter(None, [doubts.cumulative(found.probs)])
    else:
        asked = doubts.doubts_of_followup(*found, said={"probs": "p", "event": "status"})
    raised = {question.guard for question in asked}
    return {"guards": [float(guard in raised) for guard in (*ASKING, *DOUBTING)]}


def page(found):
    """Return the page, and the cells that broke a promise."""
    calm = [name for name in CALIBRATED if name in found.shown]
    claims = len(calm) * (len(ASKING) + len(DOUBTING))
    broken, rows = [], []
    total, sets_in_all = np.zeros(len(ASKING) + 1), 0
    for name in calm:
        means, sets = np.array(found.means(name, "guards")), found.trials(name, "guards")
        guards = ASKING if CALIBRATED[name].depends else (*ASKING, *DOUBTING)
        for guard, rate in zip(guards, means, strict=False):
            if rate > largest_rate(LIMIT, sets, claims):
                broken.append(f"{name}, {guard}: {rate:.4f}")
        counts = np.rint(means * sets).astype(int)
        total, sets_in_all = total + counts, sets_in_all + sets
        doubted = f"{counts[-1]} (rightly)" if CALIBRATED[name].depends else counts[-1]
        rows.append([name, sets, *counts[:-1], doubted])
    rows.append(["all", sets_in_all, *total[:-1].astype(int), ""])
    lines = ["## False alarms: calibrated data", "", SIZE, ""]
    lines += table(["data", "data sets", *ASKING, "doubt: dependent rows"], rows)
    rows = []
    for name, (_, guard) in MISREAD.items():
        place = (*ASKING, *DOUBTING).index(guard)
        shown = [n for n in SIZES if f"{name}, n = {n}" in found.shown]
        rates = [found.means(f"{name}, n = {n}", "guards")[place] for n in shown]
        rows.append([name, *(f"{rate:.2f}" for rate in rates)])
    lines += ["", "## Power: misread data", "", POWER, ""]
    lines += table(["misread as", *(f"n = {n}" for n in SIZES)], rows)
    return HEADER.format(**opening(found)) + "\n".join(lines) + "\n", broken


SIZE = """Number of data sets in which a guard asks, a false alarm; at most 1 in 1000 is wanted.
Data sets have 30 to 10 000 rows (follow-up from 60) and nine further columns: whole numbers, text,
booleans, decimals, fractions, 300 postcodes, a number of the row. Persons and stations share their
outcomes: the doubt of dependent rows is right there, and false elsewhere."""
POWER = """Share of data sets in which the guard raises its question. A misreading that no guard
notices is tested as it was given: with fewer than 250 rows check codes of censoring yourself. Rows
of one day have one common random number; three models predict n rows each. Further columns cost
power in small data sets, as rows that share a value may share outcomes."""
HEADER = """# Guards, measured

A guard looks at predictions, outcomes and the columns that nobody named, and asks whether they are
meant otherwise. Questions about values above 1, about codes that are not 0 and 1, and about missing
outcomes follow from the values with certainty and are not simulated.

{made}

"""

STUDY = Study(
    "guards", DATA, tests, measure, page, sets=200, quick=10,
    times=dict.fromkeys(CALIBRATED, 5),
)  # fmt: skip
if __name__ == "__main__":
    run(STUDY)
