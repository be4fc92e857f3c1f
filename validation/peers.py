"""The tests and intervals of other packages, on data that are calibrated and data that are not.

``python -m validation.peers`` writes ``docs/peers.md``. The packages are needed only to measure:
those of :data:`VERSIONS` that are not installed are left out of a run, and keep their numbers.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata

import numpy as np

import caltest
from validation import draws
from validation.known_errors import middling
from validation.pages import largest_rate, opening, spread, table
from validation.peers_fixed import FIXED, fixed_page
from validation.peers_tools import TOOLS, B
from validation.study import Study, run

LEVEL = 0.05
#: The versions measured; others are not mixed with them.
VERSIONS = {
    "probcal": "0.4.0",
    "MAPIE": "1.6.0",
    "MCGrad": "0.1.5",
    "calzone-tool": "0.1.0",
    "uncertainty-calibration": "0.1.4",
    "netcal": "1.4.0",
    "scikit-learn": "1.9.1",
    "calibstats": "0.1.0",
    "reliably-metrics": "0.1.0",
    "kunko-judge-audit": "0.5.1",
    "sys1bench": "0.3.2",
}


# --- data --------------------------------------------------------------------------------------


def same(p):
    return p


def sloped(s, p):
    odds = (p / (1.0 - p)) ** s
    return odds / (1.0 + odds)


def higher(a, p):
    return p + a


@dataclass(frozen=True)
class Kind:
    """Predictions of class 1, how often it really happens, and the error where that is known."""

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], np.ndarray]
    truth: Callable[[np.ndarray], np.ndarray] = same
    error: float | None = None

    @property
    def key(self) -> str:
        return f"{self.name}, n={self.n}"

    @property
    def calibrated(self) -> bool:
        return self.truth is same

    def __call__(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        p = self.draw(rng, self.n)
        return p, (rng.random(self.n) < self.truth(p)).astype(int)


KINDS = [
    Kind("uniform", 100, draws.uniform, error=0.0),
    Kind("uniform", 1000, draws.uniform, error=0.0),
    Kind("very confident", 500, draws.confident, error=0.0),
    Kind("rate .01, gamma(.5, .02)", 1000, partial(draws.gamma, 0.5, 0.02), error=0.0),
    Kind("nine values", 200, draws.tied, error=0.0),
    # A binary fraction, of which n rows expect whole events: 0 is 0 in every package.
    Kind("one value, .125", 104, partial(draws.constant, 0.125), error=0.0),
    Kind("too sure, slope 0.7", 500, draws.uniform, partial(sloped, 0.7)),
    Kind("too unsure, slope 1.5", 500, draws.uniform, partial(sloped, 1.5)),
    Kind("too low by .05", 500, middling, partial(higher, 0.05), 0.05),
]


# --- what is measured --------------------------------------------------------------------------


def package(tool):
    return tool.split()[0]


def version(test):
    """Return the version of the program whose numbers these are: its own, or that of caltest."""
    who = FIXED[test][0] if test in FIXED else package(test)
    if who == "caltest":
        return caltest.__version__
    return f"{who} {VERSIONS[who]}" if who in VERSIONS else who


def missing():
    """Return the packages that are not here, or of another version than the page speaks of."""
    found = []
    for name, version in VERSIONS.items():
        try:
            here = metadata.version(name)
        except metadata.PackageNotFoundError:
            here = ""
        if here != version:
            found.append(name)
    return tuple(found)


def tests(kind):
    if kind == "fixed":
        return {name: (what, VERSIONS.get(who)) for name, (who, what, _) in FIXED.items()}
    return {name: (how, VERSIONS.get(package(name))) for name, (how, _) in TOOLS.items()}


def measure(kind, wanted, rng):
    """Return whether there is an answer, whether it rejects, covers, and how long it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "fixed":
            return {name: answered(FIXED[name][1]) for name in wanted}
        p, y = kind(rng)
        return {name: judged(kind, name, p, y, rng.spawn(1)[0]) for name in wanted}


def answered(question):
    """Return the number and whether there is one; an error and nan are none."""
    try:
        value = float(question())
    except Exception:
        return 0.0, 0.0
    return (value, 1.0) if np.isfinite(value) else (0.0, 0.0)


def judged(kind, name, p, y, rng):
    how, what = TOOLS[name]
    try:
        found = how(p, y, rng)
    except Exception:
        return 0.0, 0.0, 0.0, 0.0
    if what == "p":
        return float(np.isfinite(found)), float(found <= LEVEL), 0.0, 0.0
    low, high = found
    if not (np.isfinite(low) and np.isfinite(high)):
        return 0.0, 0.0, 0.0, 0.0
    target = kind.error if what == "error" else 0.0 if kind.calibrated else None
    covers = target is not None and low <= target + 1e-9 and high >= target - 1e-9
    rejects = low > 0.0 or high < 0.0
    return 1.0, float(rejects), float(covers), high - max(low, 0.0) if what == "error" else 0.0


# --- the page ----------------------------------------------------------------------------------


def page(found):
    """Return the page; a promise is broken when a test of caltest is."""
    lines = ["| package | version |", "|---|---|"]
    lines += [f"| {name} | {version} |" for name, version in VERSIONS.items()]
    calibrated = [k for k in KINDS if k.calibrated]
    wrong = [k for k in KINDS if not k.calibrated]
    pvalues = [name for name, (_, what) in TOOLS.items() if what == "p"]
    intervals = [name for name in TOOLS if name not in pvalues]
    for title, kinds, names in (
        ("False alarms: p ≤ 0.05 on calibrated data", calibrated, pvalues),
        ("Power: p ≤ 0.05 on miscalibrated data", wrong, pvalues),
        ("False alarms: 95 % intervals without 0 on calibrated data", calibrated, intervals),
        ("95 % intervals without 0 on miscalibrated data", wrong, intervals),
    ):
        rows = [
            [name, sets(found, kinds, name)] + [share(found, k, name) for k in kinds]
            for name in names
        ]
        head = ["", "data sets", *(k.key for k in kinds)]
        lines += ["", f"## {title}", "", *table(head, rows)]
    (known,) = (k for k in wrong if k.error is not None)
    rows = [
        [name, *(f"{means[j] / means[0]:.3f}" for j in (2, 3))]
        for name in intervals
        if TOOLS[name][1] == "error" and (means := found.means(known.key, name)) and means[0]
    ]
    lines += ["", f"## 95 % intervals of the error .05: {known.key}", ""]
    lines += table(["", "contain it", "mean length"], rows)
    lines += ["", *fixed_page(found)]
    text = HEADER.format(b=B, **opening(found)) + "\n".join([*lines, ""])
    return text, []


def sets(found, kinds, name):
    return spread([found.trials(kind.key, name) for kind in kinds])


def share(found, kind, name):
    """Return how often a test rejects, among the data sets for which it has an answer."""
    means = found.means(kind.key, name)
    if means is None or not means[0]:
        return "–" if means is None else "none"
    rate = means[1] / means[0]
    answers = round(means[0] * found.trials(kind.key, name))
    most = largest_rate(LEVEL, answers, len(TOOLS) * sum(k.calibrated for k in KINDS))
    shown = f"**{rate:.3f}**" if kind.calibrated and rate > most else f"{rate:.3f}"
    return shown if means[0] == 1.0 else f"{shown} ({1.0 - means[0]:.0%} without)"


HEADER = """# Other packages: validity of tests and intervals

What tests and intervals of other packages do on the same data, called as their documentation shows.
Percentiles of the ECE of resampled rows, the usual recipe for an interval, leave out the true error
of 0 in every calibrated data set whose predictions vary, whichever package makes them: only the gap
of a single bin is now and then 0 in a resample. Tests whose law is right hold their level wherever
they come from.

Predictions are of class 1 of two; {{doc}}`validity` says how data are drawn. A rate is in bold
where calibrated data are rejected more often than chance allows, one false alarm in a thousand such
pages. "Without" is the share of data sets for which there was no number, because of an error or
`nan`; rates are of the others. Resampling uses {b} replicates where that can be asked for. The
NumPy loops are ten lines, in `validation/peers_tools.py`.

What lies behind the numbers: `evaluate()` of probcal resamples events and others apart by default
(`stratify=True`), so that an interval of the intercept does not see how many events there were;
intercepts are of the logarithm of the odds. MCGrad says that the p-value of its largest error over
segments is not adjusted; here three features of five values know nothing of the errors.
calzone-tool takes two degrees of freedom off Hosmer and Lemeshow's law, which is for data that the
model was fitted to. Spiegelhalter's test in MAPIE is one-sided: it sees models that are too sure,
never those that are too unsure. uncertainty-calibration reads its alpha as a percentage where its
documentation has a fraction, so that its interval of "alpha=0.05" is nearly the range of its 100
samples.

reliably-metrics takes the larger of p and 1 − p as the confidence, also for one column of
probabilities: it has no error of P(1), and errors of the two classes cancel in a bin, as in the
rows that are too low by .05. Its BCa interval corrects the median bias of a bootstrap; that moves
it down, but seldom to 0.
sys1bench prints the mean and the standard deviation of the ECE of a calibrated model beside
the ECE, the noise floor of this documentation, by 200 draws; it makes no p-value of them.

Not measured: packages in Julia and R (CalibrationErrors.jl, reliabilitydiag, CalibrationCurves),
and those without a test or an interval to measure (torchmetrics, relplot, PyCalib,
uncertainty-metrics, probmetrics 1.3.0, torch-uncertainty 0.13.0, uqlm 0.6.7).

{made}

"""

ABSENT = missing()
STUDY = Study(
    "peers",
    {"fixed": "fixed", **{kind.key: kind for kind in KINDS}},
    tests,
    measure,
    page,
    sets=500,
    quick=3,
    slow=tuple(
        name
        for name in (*TOOLS, *FIXED)
        if package(FIXED[name][0] if name in FIXED else name) in ABSENT
    ),
    version=version,
)
if __name__ == "__main__":
    if ABSENT:
        print(f"left out, not installed in the version of the page: {', '.join(ABSENT)}")
        sys.argv.append("--fast")
    run(STUDY)
