"""Size of tests of risks with follow-up, and coverage of O:E, intercept and slope.

``python -m validation.outcomes`` writes ``docs/outcomes.md``; ``--quick`` is a small version that
prints. Either fails when a size passes 0.075, or an interval of 95 % covers in fewer than 90 %, by
more than chance allows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

import caltest as ct
from validation.pages import FALSE_ALARM, largest_rate, opening, table
from validation.study import Study, run

#: Replicates of a p-value; the largest size and the smallest coverage that are promised.
B, LARGEST, LEAST = 99, 0.075, 0.90
ALPHA, LEVEL = 0.05, 0.95
STATISTICS = {
    "ECE": ct.ECE(ct.QuantileBins(10)),
    "in the large": ct.CalibrationInTheLarge(),
    "CoxScore": ct.CoxScore(),
    "HosmerLemeshow": ct.HosmerLemeshow(),
    "DebiasedL2": ct.DebiasedL2(ct.QuantileBins(10)),
    "Kuiper": ct.Kuiper(),
    "MultiScale": ct.MultiScale(),
    "ScoreGap": ct.ScoreGap("log"),
}
#: What intervals are to cover for a calibrated model.
COVERED = {"O:E": 1.0, "given b = 1": 0.0, "a": 0.0, "b": 1.0}
RISKS = {"rare": (0.7, 13.0), "mid": (1.2, 2.2), "high": (4.0, 1.6)}


@dataclass(frozen=True)
class Design:
    """Exponential times with P(T ≤ 1) = p, and exponential censoring.

    The hazard of censoring has the ratio exp(2 ``dependence``) from the lowest to the highest
    prediction; ``unknown`` of the rows are censored before the horizon, and of events a share
    ``competing`` is not the one that was predicted.
    """

    risk: str
    n: int
    unknown: float = 0.3
    dependence: float = 0.0
    competing: float = 0.0
    ties: bool = False

    @property
    def key(self) -> str:
        more = {
            f"censoring × e^{2 * self.dependence:g}": self.dependence,
            f"{self.competing:.0%} of events compete": self.competing,
            "times in tenths": self.ties,
        }
        words = ", ".join(word for word, holds in more.items() if holds)
        return f"{self.risk}, n = {self.n}, {self.unknown:.0%} unknown" + f", {words}" * bool(words)

    def __call__(self, rng):
        p = np.clip(rng.beta(*RISKS[self.risk], self.n), 1e-4, 0.999)
        # hazards add up: the event has its risk where nothing competes with it
        event = rng.exponential(size=self.n) / -np.log1p(-p)
        lost = _lost(p, self.dependence, rng) / _rate(self.risk, self.unknown, self.dependence)
        kind = np.ones(self.n, dtype=int)
        if self.competing:
            event, kind = _competing(p, self.competing, rng)
        time = np.minimum(event, lost)
        kind = kind * (event <= lost)
        if self.ties:
            time = np.ceil(10.0 * time) / 10.0
        return p, ct.Followup(time, kind == 1, horizon=1.0, competing=kind == 2)


def _competing(p, share, rng):
    """Draw times of two kinds of events: by time 1 one has the risk p, the other share (1 − p)."""
    first = rng.random(p.size) < p
    second = ~first & (rng.random(p.size) < share)
    time = np.where(first | second, rng.random(p.size), np.inf)
    return time, np.where(first, 1, np.where(second, 2, 0))


def _lost(p, dependence, rng):
    rank = 2.0 * (p.argsort().argsort() + 0.5) / p.size - 1.0
    return rng.exponential(size=p.size) * np.exp(-dependence * rank)


@cache
def _rate(risk, unknown, dependence):
    """Return the hazard of censoring that leaves this share of the rows unknown."""
    rng = np.random.default_rng(7)
    p = np.clip(rng.beta(*RISKS[risk], 40_000), 1e-4, 0.999)
    event, lost = rng.exponential(size=p.size) / -np.log1p(-p), _lost(p, dependence, rng)
    share = lambda h: (lost * np.exp(-h) < np.minimum(event, 1.0)).mean() - unknown  # noqa: E731
    return float(np.exp(brentq(share, -9.0, 9.0)))


@dataclass(frozen=True)
class Seen:
    """Exponential times of risks Beta(1.2, 2.2) by time 1, and what is seen of them, and said."""

    name: str
    n: int
    what: str
    dependence: float = 0.0
    claims: bool = True

    @property
    def key(self) -> str:
        words = f", censoring × e^{2 * self.dependence:g}" * bool(self.dependence)
        return f"{self.name}, n = {self.n}{words}"

    def __call__(self, rng):
        many = 3 * self.n if self.what in LATE else self.n
        p = np.clip(rng.beta(*RISKS["mid"], many), 1e-4, 0.999)
        event = rng.exponential(size=many) / -np.log1p(-p)
        lost = _lost(p, self.dependence, rng) / _rate("mid", 0.3, self.dependence)
        if self.what == "causes":
            return _causes(p, lost, rng)
        time, kind = np.minimum(event, lost), event <= lost
        if self.what in LATE:
            return _late(p, time, kind, self.what, self.n, rng)
        years = {"floor": np.floor(5.0 * time), "ceil": np.ceil(5.0 * time)}
        recorded = "floor" if self.what == "floor as exact" else self.what
        said = "exact" if self.what == "floor as exact" else self.what
        return p, ct.Followup(years[recorded], kind, horizon=5.0, recorded=said)


#: Ways to test rows that were not under observation from the start.
LATE = ("late ignored", "late given entry", "landmark")


def _causes(p, lost, rng):
    """Let three other causes compete, early, evenly and late, more of them where p is high."""
    first = rng.random(p.size) < p
    other = np.cumsum(np.outer(1.0 - p, [0.1, 0.1, 0.1]) * (0.5 + p)[:, None], axis=1)
    cause = np.where(
        first, 0, 1 + (rng.random((p.size, 1)) * (1.0 - p)[:, None] > other).sum(axis=1)
    )
    u = rng.random(p.size)
    event = np.where(cause == 4, np.inf, np.choose(np.minimum(cause, 3), [u, u**2, u, u**0.5]))
    time, seen = np.minimum(event, lost), event <= lost
    return p, ct.Followup(
        time, seen & (cause == 0), horizon=1.0, competing=seen & np.isin(cause, (1, 2, 3))
    )


def _late(p, time, event, what, n, rng):
    """Let rows enter at a time in (0, 0.4), if they are still under observation then."""
    entry = rng.uniform(0.0, 0.4, p.size)
    seen = np.flatnonzero(time > (0.4 if what == "landmark" else entry))[:n]
    p, time, event, entry = p[seen], time[seen], event[seen], entry[seen]
    if what == "late ignored":
        return p, ct.Followup(time, event, horizon=1.0)
    entry = np.full(p.size, 0.4) if what == "landmark" else entry
    left = 1.0 - entry  # of a constant hazard
    horizon = 0.6 if what == "landmark" else left
    return 1.0 - (1.0 - p) ** left, ct.Followup(time - entry, event, horizon=horizon)


SEEN = [
    Seen("three competing causes", 300, "causes"),
    Seen("three competing causes", 1000, "causes"),
    Seen("three competing causes", 1000, "causes", dependence=1.0),
    Seen("late entry, risk given no event at entry", 600, "late given entry"),
    Seen("late entry, landmark", 600, "landmark"),
    Seen("years completed, `recorded='floor'`", 600, "floor"),
    Seen("years begun, `recorded='ceil'`", 600, "ceil"),
    Seen("late entry ignored", 600, "late ignored", claims=False),
    Seen("years completed, as exact times", 600, "floor as exact", claims=False),
]
DESIGNS = {
    design.key: design
    for design in [
        *(Design(risk, n) for risk in RISKS for n in (200, 1000)),
        Design("mid", 1000, dependence=1.0),
        Design("mid", 1000, dependence=-1.0),
        Design("high", 1000, dependence=1.0),
        Design("mid", 1000, competing=0.4),
        Design("mid", 1000, ties=True),
        Design("mid", 1000, 0.6),
        *SEEN,
    ]
}
#: Designs that the docs warn of: nothing is promised.
WARNED = [design.key for design in SEEN if not design.claims]


def tests(design):
    return {name: repr(s) for name, s in STATISTICS.items()} | dict.fromkeys(COVERED, LEVEL)


def measure(design, wanted, rng):
    """Return whether tests reject a calibrated model, and whether intervals cover."""
    p, seen = design(rng)
    answers = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = [(s, None) for s in STATISTICS.values()]
        joint = ct.joint_test(p, seen, pairs=pairs, n_resamples=B, rng=int(rng.integers(2**63)))
        for name, test in zip(STATISTICS, joint.tests, strict=True):
            answers[name] = (float(test.pvalue <= ALPHA),)
        try:
            fit = ct.cox_recalibration(p, seen, level=LEVEL)
        except ct.StatisticError:  # refused, where weights are too uneven
            return {name: answers.get(name, (0.0, 0.0)) for name in wanted}
    intervals = (fit.oe_interval, fit.in_the_large_interval)
    intervals += (fit.intercept_interval, fit.slope_interval)
    for (name, truth), (low, high) in zip(COVERED.items(), intervals, strict=True):
        answers[name] = (float(low <= truth <= high), 1.0)
    return {name: answers[name] for name in wanted}


def page(found):
    """Return the page, and the cells that broke their promise."""
    claims = len([n for n in found.shown if n not in WARNED]) * (len(STATISTICS) + len(COVERED))
    broken, sizes, rows, wrong, covers = [], [], [], [], []
    for name in found.shown:
        cells, promised = [], name not in WARNED
        for test in STATISTICS:
            rate, sets = found.means(name, test)[0], found.trials(name, test)
            sizes += [rate] * promised
            above = promised and rate > largest_rate(LARGEST, sets, claims)
            broken += [f"{test}, {name}: {rate:.3f}"] * above
            cells.append(f"**{rate:.3f}**" if rate > LARGEST else f"{rate:.3f}")
        (rows if promised else wrong).append([name, found.sets(name), *cells])
        cells = []
        for test in COVERED if promised else ():
            covered, given = found.means(name, test)
            sets = round(given * found.trials(name, test))
            rate = covered / given if sets else 1.0
            below = binom.cdf(round(rate * sets), sets, LEAST) < FALSE_ALARM / claims
            broken += [f"{test}, {name}: covers {rate:.3f}"] * bool(below)
            cells.append(f"{rate:.3f}" if sets else "–")
        if promised:
            covers.append([name, round(given * found.sets(name)), *cells])
    head = ["data", "data sets", *STATISTICS]
    lines = ["## Size", "", *table(head, rows), "", WRONG, "", *table(head, wrong)]
    lines += ["", "## Coverage of 95 % intervals", ""]
    lines += [*table(["data", "intervals given", *COVERED], covers, left=1), ""]
    words = {"mean": sum(sizes) / len(sizes), "worst": max(sizes), "count": len(sizes), "b": B}
    return HEADER.format(**words, **opening(found)) + "\n".join(lines), broken


HEADER = """# Censored follow-up: size and coverage

Tests of a calibrated model with follow-up reject in {mean:.3f} of data sets at the 5 % level, on
average over {count} cells, and in {worst:.3f} in the worst; sizes above 0.075 are in bold. P-values
rest on {b} draws of `RedrawFollowup()`, with strata by prediction.

Risks are Beta(0.7, 13) (rare, of mean 0.05), Beta(1.2, 2.2) (mid) and Beta(4, 1.6) (high), times of
events exponential, and of censoring, where "× e^2" says how much larger its hazard is for the
highest prediction than for the lowest. O:E is observed over expected events, a and b are intercept
and slope of Cox's line, "given b = 1" is its calibration-in-the-large. How such data are tested:
{{doc}}`tutorials/followup`.

{made}

"""

WRONG = """## What does not hold

Rows that entered late are seen only if they had no event before, and times in completed years are
earlier than they were. Both reject calibrated models if nothing is said. `Followup` refuses
`entry=` with the two ways that hold, and a note asks how coarse times were recorded. Entry is
uniform on (0, 0.4); the horizon is five years where times are years."""
STUDY = Study("outcomes", DESIGNS, tests, measure, page, sets=500, quick=10)
if __name__ == "__main__":
    run(STUDY)
