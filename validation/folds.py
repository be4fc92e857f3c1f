"""Size of tests of cross-validated rows, beside fresh rows of the same learners.

``python -m validation.folds`` writes ``docs/folds.md``; ``--quick`` is a small version that prints.
Either fails when out-of-fold predictions are rejected more often than 0.075 and than fresh rows
plus 0.03, by more than chance allows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import expit, logit

import caltest as ct
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

ALPHA, B = 0.05, 199
#: The largest size, and how much more often than fresh rows folds may be rejected.
LIMIT, MARGIN = 0.075, 0.03


def features(d, strength, n, rng):
    """Draw d normal features and events whose log-odds are linear in them."""
    x = rng.standard_normal((n, d))
    return x, (rng.random(n) < expit(strength * x.sum(axis=1) / np.sqrt(d) - 1.0)).astype(int)


def curved(n, rng):
    """Draw five normal features and events whose log-odds are curved in them."""
    x = rng.standard_normal((n, 5))
    odds = x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] ** 2 - 1.5
    return x, (rng.random(n) < expit(odds)).astype(int)


def sites(count, n, rng, level):
    """Draw the sites of rows, a noisy feature, and events whose rate depends on the site."""
    x = np.column_stack([rng.integers(count, size=n), rng.standard_normal(n)])
    return x, (rng.random(n) < expit(level[x[:, 0].astype(int)])).astype(int)


def base_rate(x, y):
    """Return the share of events, whatever the features."""
    return lambda z: np.full(len(z), y.mean())


def true_model(x, y):
    """Return the model that is true for :func:`features`: nothing is fitted."""
    return lambda z: expit(z.sum(axis=1) / np.sqrt(z.shape[1]) - 1.0)


def logistic(penalty, x, y):
    """Return a logistic regression with this penalty of squared slopes."""
    design = np.column_stack([np.ones(len(x)), x])
    ridge = np.diag(np.append(1e-8, np.full(x.shape[1], penalty)))
    b = np.zeros(design.shape[1])
    for _ in range(25):
        m = expit(design @ b)
        information = (design * (m * (1.0 - m))[:, None]).T @ design + ridge
        step = np.linalg.solve(information, design.T @ (y - m) - ridge @ b)
        b += step
        if np.abs(step).max() < 1e-8:
            break
    return lambda z: expit(b[0] + z @ b[1:])


def boosting(rounds, depth, rate, x, y):
    """Return scikit-learn's histogram gradient boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=rounds, max_depth=depth, learning_rate=rate, early_stopping=False
    )
    model.fit(x, y)
    return lambda z: model.predict_proba(z)[:, 1]


def forest(trees, leaf, x, y):
    """Return scikit-learn's random forest of trees with so many rows in a leaf."""
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(trees, min_samples_leaf=leaf, random_state=int(y.sum()))
    model.fit(x, y)
    return lambda z: model.predict_proba(z)[:, 1]


def rates(count, rows, slope, x, y):
    """Return rates of sites, shrunk to the mean by so many rows, and moved by the feature."""
    site = x[:, 0].astype(int)
    events = np.bincount(site, y, count) + rows * y.mean()
    rate = events / (np.bincount(site, minlength=count) + rows)
    return lambda z: expit(logit(rate[z[:, 0].astype(int)]) + slope * z[:, 1])


@dataclass(frozen=True)
class Design:
    """A learner, the rows that it learns from and predicts, and how they are dealt to folds.

    ``repeats`` are several divisions of the rows into folds, each with its own predictions, and
    ``combined`` is the way in which they give one p-value.
    """

    name: str
    draw: partial
    learner: partial | object
    n: int
    k: int
    stratified: bool = False
    fresh: bool = False
    repeats: int = 1
    combined: str = ""
    claims: bool = True

    @property
    def key(self) -> str:
        if self.fresh:
            return f"{self.name}, fresh, {self.n} rows, fitted to {self.n - self.n // self.k}"
        folds = f"{self.k} folds{' stratified' * self.stratified}"
        words = f", {self.repeats} × {folds}, {self.combined}" if self.combined else f", {folds}"
        return f"{self.name}, {self.n} rows{words}"

    def __call__(self, rng):
        """Return predictions (n, R), labels, and folds (n, R), None for fresh rows."""
        draw = self.draw
        if draw.func is sites:  # the same sites for all rows
            draw = partial(draw, level=0.5 * rng.standard_normal(draw.args[0]) - 1.0)
        x, y = draw(self.n, rng)
        if self.fresh:
            learnt = self.learner(*draw(self.n - self.n // self.k, rng))
            return bounded(learnt(x))[:, None], y, None
        p, folds = np.empty((self.n, self.repeats)), np.empty((self.n, self.repeats), dtype=int)
        for r in range(self.repeats):
            fold = rng.permutation(np.arange(self.n) % self.k)
            if self.stratified:
                fold[np.lexsort((rng.random(self.n), y))] = np.arange(self.n) % self.k
            for j in range(self.k):
                out = fold == j
                p[out, r] = self.learner(x[~out], y[~out])(x[out])
            folds[:, r] = fold
        return bounded(p), y, folds


def bounded(p):
    return np.clip(p, 1e-9, 1.0 - 1e-9)


TWO, FIVE, TEN = (partial(features, d, 1.0) for d in (2, 5, 10))
NOISE = partial(features, 2, 0.0)
#: Learners without groups of rows, their rows and folds.
PLAIN = [
    Design("true model", TWO, true_model, 500, 10),
    Design("base rate", NOISE, base_rate, 500, 10),
    Design("logistic regression, 2 features", TWO, partial(logistic, 1.0), 100, 5),
    Design("logistic regression, 2 features", TWO, partial(logistic, 1.0), 500, 10),
    Design("logistic regression, 2 features", TWO, partial(logistic, 1.0), 500, 10, True),
    Design("logistic regression, 10 features", TEN, partial(logistic, 1.0), 500, 10),
    Design("ridge 300, 10 features", TEN, partial(logistic, 300.0), 500, 5),
    Design("boosting, 20 rounds, depth 2", FIVE, partial(boosting, 20, 2, 0.1), 1000, 10),
    Design("boosting, 50 rounds, depth 3", partial(curved), partial(boosting, 50, 3, 0.1), 500, 5),
    Design("boosting, 50 rounds, depth 3", partial(curved), partial(boosting, 50, 3, 0.1), 1000, 5),
    Design("boosting, 50 rounds, depth 3", partial(curved), partial(boosting, 50, 3, 0.1), 500, 2),
    Design("forest, leaves of 10 rows", FIVE, partial(forest, 30, 10), 500, 5),
    Design("forest, leaves of 10 rows", partial(curved), partial(forest, 30, 10), 1000, 5),
    Design("forest, leaves of 1 row", FIVE, partial(forest, 30, 1), 500, 5),
]
FIFTY, HUNDRED = partial(sites, 50), partial(sites, 100)
#: Learners that memorise groups of rows.
GROUPED = [
    Design("rates of 50 sites", FIFTY, partial(rates, 50, 20, 0.0), 1000, 2),
    Design("rates of 50 sites", FIFTY, partial(rates, 50, 20, 0.0), 1000, 5),
    Design("rates of 50 sites", FIFTY, partial(rates, 50, 20, 0.0), 1000, 10),
    Design("rates of 50 sites", FIFTY, partial(rates, 50, 20, 0.0), 1000, 10, True),
    Design("rates of 100 sites", HUNDRED, partial(rates, 100, 20, 0.0), 2000, 10),
    Design("boosting on 50 sites", FIFTY, partial(boosting, 50, 3, 0.1), 1000, 5),
    Design("forest on 50 sites", FIFTY, partial(forest, 30, 10), 1000, 5),
]
NEAR = Design("rates of 50 sites + 0.1 x", FIFTY, partial(rates, 50, 20, 0.1), 1000, 10)
ONCE = [PLAIN[1], PLAIN[3], PLAIN[6], PLAIN[8], GROUPED[2]]
REPEATED = [replace(d, k=5, n=500, repeats=5, combined="twice the median p") for d in ONCE]
WRONG = [
    replace(REPEATED[0], combined="mean prediction", claims=False),
    replace(REPEATED[1], combined="smallest p", claims=False),
]
IN_FOLDS = [*PLAIN, *GROUPED, replace(NEAR, claims=False), *REPEATED, *WRONG]


def fresh_of(design):
    """Return the design of fresh rows, predicted by a model of as many rows as those of folds."""
    return replace(design, fresh=True, stratified=False, repeats=1, combined="", claims=False)


FRESH = {fresh_of(design).key: fresh_of(design) for design in IN_FOLDS}
DATA = {design.key: design for design in IN_FOLDS} | FRESH
STATISTICS = {
    "ECE": ct.ECE(),
    "quantile ECE": ct.ECE(ct.QuantileBins(15)),
    "CoxScore": ct.CoxScore(),
    "Kuiper": ct.Kuiper(),
    "DebiasedL2": ct.DebiasedL2(),
    "MultiScale": ct.MultiScale(),
}
WITHIN = "within folds"


def tests(design):
    return {name: repr(s) for name, s in STATISTICS.items()} | {WITHIN: 1}


def measure(design, wanted, rng):
    """Return whether each test rejects, and the share of repeats tested within folds."""
    p, y, folds = design(rng)
    kind, answers = {"n_resamples": B, "rng": int(rng.integers(2**63)), "as_is": True}, {}
    if design.combined == "mean prediction":
        p, folds = bounded(p.mean(axis=1, keepdims=True)), None
    facts = [{} if folds is None else {"folds": folds[:, r]} for r in range(p.shape[1])]
    within = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, statistic in STATISTICS.items():
            pvalues = []
            for column, fact in zip(p.T, facts, strict=True):
                test = ct.calibration_test(column, y, statistic, **fact, **kind)
                pvalues.append(test.pvalue)
                within += bool(fact) and test.folds.within
            one = {"twice the median p": 2.0 * np.median(pvalues)}
            answers[name] = (one.get(design.combined, min(pvalues)) <= ALPHA,)
    answers[WITHIN] = (within / (len(STATISTICS) * len(facts)),)
    return {name: answers[name] for name in wanted}


def page(found):
    """Return the page, and the cells that broke their promise."""
    claims = len(STATISTICS) * sum(DATA[name].claims for name in found.shown)
    parts, broken, rates_found = {"plain": [], "grouped": [], "repeated": [], "wrong": []}, [], []
    for design in IN_FOLDS:
        name, fresh = design.key, fresh_of(design).key
        if not {name, fresh} <= set(found.shown):
            continue
        cells = []
        for test in STATISTICS:
            rate, beside = found.means(name, test)[0], found.means(fresh, test)[0]
            limit = max(LIMIT, beside + MARGIN)
            above = limit < 1.0 and rate > largest_rate(limit, found.trials(name, test), claims)
            broken += [f"{name}, {test}: {rate:.3f} | {beside:.3f}"] * (above and design.claims)
            rates_found += [rate - max(LIMIT, beside)] * design.claims
            cells.append(f"{f'**{rate:.3f}**' if rate > limit else f'{rate:.3f}'} ({beside:.3f})")
        inside = found.means(name, WITHIN)[0]
        kind = "wrong" if not design.claims else "repeated" if design.combined else "plain"
        kind = "grouped" if kind == "plain" and design in GROUPED else kind
        parts[kind].append([name, found.sets(name), *cells, f"{inside:.2f}"])
    head = ["predictions", "data sets", *STATISTICS, WITHIN]
    text = HEADER.format(worst=max(rates_found), **opening(found))
    for kind, words in WORDS.items():
        text += "\n".join([words, *table(head, parts[kind]), "", ""])
    return text.rstrip() + "\n", broken


HEADER = """# Cross-validated predictions, measured

How often are out-of-fold predictions rejected at the 5 % level, and how often are fresh rows? In
each cell the first number is for out-of-fold predictions, tested with `folds=`. The number in
parentheses is for as many fresh rows, predicted by one model of the same learner that was fitted to
as many rows as the models of the folds. Fresh rows are rejected more often than 0.05 where the
learner is miscalibrated, as shrunk or overfitted models are, and because the level of one model
differs by chance, which `folds=` takes out. The promise is at most 0.075 or the rate of fresh rows
plus 0.03, whichever is larger. The largest difference from the larger of 0.075 and the rate of
fresh rows is {worst:+.3f}. Rates above the promise are in bold. "Within folds" is the share of
tests that were made within folds, as models were found to memorise groups of rows.

What `folds=` does: {{doc}}`concepts/dependent`.

{made}

"""
WORDS = {
    "plain": """## Learners without groups of rows

Features are normal and log-odds of events linear in them, or curved for boosting of depth 3 and
forests of 1000 rows.
""",
    "grouped": """## Learners that memorise groups of rows

Log-odds of events differ between sites with standard deviation 0.5. Rates of sites are shrunk to
the mean by 20 rows; boosting and forests get the number of the site and a feature of pure noise.
""",
    "repeated": """## Repeated cross-validation

Rows are divided into five folds five times. Each repeat is tested, and twice the median of the five
p-values, `min(1, 2 * np.median(pvalues))`, is the answer. One repeat that was named beforehand has
the rates of the first table.
""",
    "wrong": """## What does not hold

Three ways for which nothing is promised. Rates of sites that a continuous feature of small slope
pulls apart are hardly ever found to be memorised: `Kuiper` and `CoxScore` are safe there, and other
statistics are rejected up to 0.06 more often than fresh rows. The mean prediction of the repeats,
tested as one model's, mirrors the labels. The smallest p-value of several repeats is no p-value.
""",
}
STUDY = Study("folds", DATA, tests, measure, page, sets=300, quick=4)
if __name__ == "__main__":
    run(STUDY)
