"""Guards: false alarms on calibrated data of ordinary kinds, and power on misread data.

``python -m validation.guards`` writes ``docs/guards.md``; ``--quick`` is a small version that
prints. Either fails when a guard asks about calibrated data of a kind more often than in 1 of 1000
data sets by more than chance allows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import expit, logit

import caltest as ct
from caltest._base.written import Doubt
from caltest.data import doubts, ends, spare_columns
from caltest.data.predictions import match_rows, refuse_unlike
from caltest.data.questions import Column, Rows
from caltest.errors import InvalidPredictionsError
from caltest.read import questioning
from caltest.read.contract import Wanted
from caltest.read.files import chosen_of, read_predictions, shared_ids
from caltest.read.formats import Table, flat
from caltest.read.model_rows import (
    read_each,
    read_forecasters,
    refuse_other_rows,
    refuse_shared,
)
from caltest.read.tables import cells_of
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

#: Guards that ask, those that doubt, and the rate at which a guard may ask about calibrated data.
ASKING = (
    *("train and test", "several predictions of a row", "second set", "predicted class"),
    *("confidences", "against the outcomes", "swapped censoring", "cumulative", "follow-up"),
    *("one event each", "unused weights", "several models", "percent below one"),
    *("other events", "kinds of event", "several forecasts"),
    *("permuted classes", "immature rows", "crossed events"),
)
DOUBTING = ("dependent rows",)
#: What is asked of tables only, as they are read, with the name of the guard; the last is a doubt.
OF_TABLES = {
    "further codes of an event": "other_ends",
    "marks of missing values": "missing_marks",
    "percents by name": "percents_by_name",
    "unknown outcomes": "unknown_outcomes",
    "outcomes that no row has": "constant_outcome",
    "horizon in another unit": "horizon",
}
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


def leads(rng, days=None, apart=0.0):
    """Forecasts of 2 to 5 leads for every day and station; errors by lead are ``apart``."""
    days = int(rng.integers(15, 200)) if days is None else days
    many, ahead = int(rng.integers(2, 12)), int(rng.integers(2, 6))
    level = rng.normal(-0.5, 1.2, (days, 1, 1)) + rng.normal(0, 0.5, (days, many, ahead))
    p, one = expit(level).ravel(), np.repeat(rng.random(days), many * ahead)
    y = (np.where(rng.random(p.size) < 0.5, one, rng.random(p.size)) < p).astype(int)
    day, station = np.repeat(np.arange(days), many * ahead), np.repeat(np.arange(many), ahead)
    station, lead = np.tile(station, days), np.tile(24 * np.arange(1, ahead + 1), many * days)
    p = np.clip(p + apart * np.where(lead == 24, 1.0, -1.0 / (ahead - 1)), 0.0, 1.0)
    return labelled(p, y, rng, day=day, station=station, lead=lead)


def leads_apart(rng, n):
    return leads(rng, n // 4, 0.15)


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


def items(rng, n=None, base=None, shared=0.0):
    """Items with one prediction and 2 to 8 answers each, a share of which are those of the item."""
    m = int(rng.integers(2, 9))
    count = max(50, size(rng, 100, 5000) // m) if n is None else max(n, 50)
    base = rng.uniform(-1.0, 1.0) if base is None else base
    p = np.repeat(expit(rng.normal(base, 1.5, count)), m)
    item = np.repeat(np.arange(count), m)
    own, common = rng.random(count * m), np.repeat(rng.random(count), m)
    y = (np.where(rng.random(count * m) < shared, common, own) < p).astype(int)
    return labelled(p, y, rng, item=item)


def rare_items(rng):
    return items(rng, base=-4.0)


def shared_items(rng, n):
    """Items, of whose answers 7 in 10 are that of the item."""
    return items(rng, n, shared=0.7)


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


# Tables, with the options they are read with.


def rain(rng, mark=None):
    """Rain of a day, and the probability of 0.2 mm."""
    n = size(rng, 60, 5000)
    p = rng.beta(1, 1.5, n)
    amount = np.where(rng.random(n) < p, 0.2 + rng.gamma(0.7, 6.0, n), 0.0).round(1)
    return marked({"p": p, "mm": amount}, "mm", mark, rng), {"label": "mm >= 0.2"}


def warmth(rng, mark=None):
    n = size(rng, 60, 5000)
    mean = rng.normal(12, 8, n)
    degrees = (mean + 3.0 * rng.logistic(size=n)).round(1)
    p = expit((mean - 14.95) / 3.0)
    return marked({"p": p, "degrees": degrees}, "degrees", mark, rng), {"label": "degrees >= 15"}


def counted(rng, mark=None):
    n = size(rng, 60, 5000)
    rate = rng.gamma(1.0, 0.5, n)
    cells = {"p": -np.expm1(-rate), "calls": rng.poisson(rate)}
    return marked(cells, "calls", mark, rng), {"label": "calls >= 1"}


def graded(rng, mark=None):
    """Scores from 0 to 9, of which 9 is one."""
    n = size(rng, 60, 5000)
    p = rng.beta(2, 2, n)
    grade = rng.binomial(9, p)
    return marked({"p": stats.binom.sf(4, 9, p), "grade": grade}, "grade", mark, rng), {
        "label": "grade >= 5"
    }


def laboratory(rng, mark=None):
    n = size(rng, 60, 5000)
    mean = rng.normal(1.0, 0.8, n)
    value = np.exp(mean + rng.normal(0, 1, n)).round(2)
    p = stats.norm.cdf(mean - np.log(3.0))
    return marked({"p": p, "crp": value}, "crp", mark, rng), {"label": "crp >= 3"}


def marked(cells, name, mark, rng):
    """Return cells of which 3 %, and at least three, hold a mark of a missing value."""
    if mark is not None:
        n = len(cells["p"])
        lost = rng.permutation(n)[: max(3, int(0.03 * n))]
        cells[name] = cells[name].astype(float)
        cells[name][lost] = mark
    return cells


def one_of_three(rng, unknown=0.0):
    """The highest of three grades in order, and its probability; some grades are not known."""
    n = size(rng, 60, 5000)
    level = rng.normal(0, 1.5, n)
    cut = rng.uniform(-1.0, 1.0) + np.array([0.0, rng.uniform(0.3, 2.0)])
    grade = np.digitize(level + rng.logistic(size=n), cut)
    words = np.array(["G1", "G2", "G3"])[grade]
    words = np.where(rng.random(n) < unknown, "xx", words)
    return {"p": expit(level - cut[1]), "grade": words}, {"label": "grade = 'G3'"}


def by_status(rng, codes=(0, 1)):
    """Follow-up with one code a way to end, of which 1 is the event; horizon in its unit."""
    n = size(rng, 60, 5000)
    p = rng.beta(1.2, 2.2, n)
    event = 24.0 * rng.exponential(size=n) / -np.log1p(-np.clip(p, 1e-6, 1 - 1e-6))
    lost = np.minimum(24.0 * rng.exponential(size=n) / 0.6, 40.0)
    others = rng.choice([code for code in codes if code != 1], n)
    cells = {"p": p, "months": np.minimum(event, lost).round(2)}
    cells["status"] = np.where(event <= lost, 1, others)
    return cells, {"event": "status = 1", "time": "months", "horizon": 24.0}


def soon(rng):
    """Risks by the first month of follow-up for years."""
    cells, options = by_status(rng)
    cells["p"] = -np.expm1(np.log1p(-np.clip(cells["p"], 0, 1 - 1e-6)) / 24.0)
    return cells, options | {"horizon": 1.0}


def in_years(rng):
    cells, options = by_status(rng)
    return cells, options | {"horizon": 2.0}


def called_percent(rng, scale=1.0):
    p = rng.beta(0.8, 6, size(rng)) * 0.99
    if scale > 1.0:  # percents below 1: risks of less than 1 in 100
        p = p / scale
    cells = {"risk_pct": p * scale, "y": events(p, rng)}
    return cells, {"probs": "risk_pct", "label": "y"}


def in_words(rng, label="state = 'dead'", reach=1.0):
    """A rare event among three states in words, so rare in small tables that no row has it."""
    n = size(rng, 60, 5000)
    p = reach * expit(rng.normal(rng.uniform(-7.0, -3.0), 1.0, n))
    dead = rng.random(n) < p
    state = np.where(dead, "dead", rng.choice(["alive", "moved"], n))
    return {"p": p, "state": state}, {"label": label}


def asked_of_table(cells, options):
    """Return which questions of tables are raised."""
    import polars as pl

    wanted = Wanted(**{"probs": "p"} | options)
    table = flat(Table("", pl.DataFrame(cells).lazy()))
    chosen = chosen_of(table, wanted)
    p = np.asarray(cells[chosen.terms["probs"][0].name])
    whole = cells_of(table, chosen, wanted)
    if wanted.event is None:
        rows = Rows(p, whole.complete().cells.predictions().labels)
        asked = [questioning.missing_marks(table, chosen, wanted, "label")]
        asked.append(questioning.unknown_outcomes(table, chosen, wanted, rows))
        asked.append(questioning.constant_outcome(table, chosen, wanted, rows, "label"))
    else:
        event = cells["status"] == 1
        seen = ct.Followup(cells["months"], event, horizon=wanted.horizon)
        rows = Rows(p, event, followed=True)
        asked = [questioning.other_ends(table, chosen, wanted)]
        asked.append(questioning.missing_marks(table, chosen, wanted, "event"))
    asked.append(questioning.percents_by_name(whole, chosen, rows))
    raised = {question.guard for question in asked if question}
    doubted = wanted.event is not None and any(isinstance(n, Doubt) for n in seen.unit_notes(p))
    return raised | ({"horizon"} if doubted else set())


# Two models to compare: how they are read, their tables, and options.


def rivals(rng, n=None, base=None):
    """Return outcomes and two calibrated predictions, of which the second knows more, (3, n)."""
    n = size(rng, 30, 5000) if n is None else n
    reach, base = rng.uniform(0.3, 1.5), rng.uniform(-1.5, 1.5) if base is None else base
    known, more, noise = rng.normal(0, 1, (3, n))
    level = base + known + reach * more
    few = stats.norm.cdf((base + known) / np.hypot(1.0, reach))
    return (level + noise > 0).astype(int), few, stats.norm.cdf(level)


def beside(rng, n, bare=False, **cells):
    """Return cells with features beside them, or alone if ``bare``."""
    return cells if bare else cells | columns(n, rng)


def in_columns(rng):
    y, a, b = rivals(rng)
    return "columns", [beside(rng, len(y), p_a=a, p_b=b, y=y)], {"probs": "p_a,p_b", "label": "y"}


def own_outcomes(rng, label="right_a,right_b"):
    """Confidences of two models in answers of their own to the same questions."""
    p = rng.beta(1.8, 1.2, (2, size(rng, 30, 5000)))
    right_a, right_b = (events(one, rng) for one in p)
    cells = beside(rng, p.shape[1], p_a=p[0], p_b=p[1], right_a=right_a, right_b=right_b)
    return "columns", [cells], {"probs": "p_a,p_b", "label": label}


def in_rows(rng):
    """Two models in the rows of one long table, in any order."""
    y, a, b = rivals(rng)
    n, order = len(y), rng.permutation(2 * len(y))
    cells = {name: np.tile(values, 2) for name, values in columns(n, rng).items()}
    cells |= {"p": np.concatenate([a, b]), "y": np.tile(y, 2), "model": np.repeat([*"ab"], n)}
    return "rows", [{name: values[order] for name, values in cells.items()}], {}


def in_files(rng, way="files", bare=False, shuffled=False, n=None):
    """Two models of the same observations in a file each."""
    y, a, b = rivals(rng, n)
    shared = beside(rng, len(y), bare, y=y)
    order = rng.permutation(len(y)) if shuffled else np.arange(len(y))
    second = {name: values[order] for name, values in (shared | {"p": b}).items()}
    return way, [shared | {"p": a}, second], {}


def of_others(rng, way="others", same_n=True, base=None):
    """Two models of different observations, numbered from 0 in both files."""
    files = []
    n = size(rng, 30, 5000) if same_n else None
    for _ in range(2):
        y, p, _ = rivals(rng, n, base)
        files.append(beside(rng, len(y), y=y, p=p))
    return way, files, {}


def asked_of_models(way, tables, options):
    """Return whether reading two models for a comparison raises a question or is refused."""
    import polars as pl

    tables = [pl.DataFrame(cells) for cells in tables]

    def rows(table, ids=None, as_is=True):
        return read_predictions(table, "p", "y", ids=ids, as_is=as_is)

    try:
        if way == "others":
            refuse_shared(tables, rows)
            for table in tables:
                rows(table, as_is=False)
            return False
        if way == "columns":
            read = read_forecasters(tables[0], **options)
        elif way == "rows":
            read = read_each(tables[0], "model", "p", "y")
        else:
            ids = shared_ids(tables)
            read = {k: rows(t, ids, as_is=False) for k, t in zip("ab", tables, strict=True)}
            if ids is None:
                refuse_other_rows([*read], tables, [*read.values()], rows)
        own = "," in options.get("label", "")
        refuse_unlike(("a", "b"), *match_rows(read, own).values(), own_labels=own)
    except InvalidPredictionsError:
        return True
    return False


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


def two_ends(rng, n):
    """Risks and follow-up of n rows whose competing event stands in a column of its own."""
    p = rng.beta(1.2, 2.2, n)
    event = rng.exponential(size=n) / -np.log1p(-np.clip(p, 1e-6, 1 - 1e-6))
    times = np.column_stack([rng.uniform(0.4, 2.4, n), event, rng.exponential(3.0, n)])
    code = times.argmin(axis=1)
    seen = ct.Followup(times.min(axis=1), code == 1, horizon=1.0)
    return p, seen, {"other": (code == 2) * 1}


def reversed_classes(rng, n):
    """Probabilities of three classes in the reverse of their order."""
    probs = rng.dirichlet((2.0, 1.0, 3.0), n)
    y = (probs.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return labelled(probs[:, ::-1], y, rng)


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


def two_models(rng, n):
    """Answers of two models to the same questions, each right or wrong by itself."""
    p = rng.beta(1.8, 1.2, 2 * n)
    question, model = np.tile(np.arange(n), 2), np.repeat([*"ab"], n)
    return labelled(p, events(p, rng), rng, question=question, model=model)


def of_percents(rng, n):
    """Probabilities around 0.5 % as numbers in percent, of 40 n rows."""
    p = rng.uniform(0.001, 0.009, 40 * n)
    return labelled(100.0 * p, events(p, rng), rng)


def days_of_stations(rng, n):
    days = n // 5
    p = expit(np.repeat(rng.normal(-0.5, 1.2, days), 5) + rng.normal(0, 0.3, 5 * days))
    y = (np.repeat(rng.random(days), 5) < p).astype(int)
    return labelled(p, y, rng, day=np.repeat(np.arange(days), 5))


def months(rng, sign="closed", n=None, known=1.0):
    """Return rows of twelve months, the last six marked; of their events a share is known."""
    n = n or size(rng)
    p, month = rng.beta(1, 4, n), rng.integers(1, 13, n)
    young = month > 6
    y = events(p, rng) * np.where(young, rng.random(n) < known, 1)
    words = np.array([f"2024-{k:02d}" for k in month])
    return labelled(p, y.astype(int), rng, month=words, **{sign: ~young})


def shared_months(rng):
    """Return rows of days with shared outcomes, the last days marked."""
    days = size(rng, 30, 1000)
    p = expit(rng.normal(-1, 1, days))
    day, alone = np.repeat(np.arange(days), 5), rng.random(5 * days) < 0.3
    y = np.where(alone, events(p[day], rng), events(p, rng)[day])
    words = np.array([f"2024-{1 + k // 100:02d}-{k % 100:02d}" for k in range(days)])[day]
    return labelled(np.repeat(p, 5), y, rng, day=words, phase=day > days // 2)


def young_rows(rng, n):
    return months(rng, "phase", n, 0.5)


@dataclass(frozen=True)
class Kind:
    """Data of a kind: what draws it, of n rows if misread, and the guard that then answers."""

    draw: Callable
    n: int = 0
    guard: str = ""
    depends: bool = False
    more: tuple = ()

    def __call__(self, rng):
        return self.draw(rng, self.n) if self.n else self.draw(rng, *self.more)


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
    "stations × days × leads": Kind(leads, depends=True),
    "persons with 2 to 8 rows": Kind(persons, depends=True),
    "panels": Kind(panels, depends=True),
    "panels, rare events": Kind(rare_panels, depends=True),
    "folds and parts without train": Kind(folds),
    "items × 2 to 8 answers": Kind(items),
    "items × 2 to 8 answers, rare events": Kind(rare_items),
    "months, the last six marked": Kind(months),
    "days with shared outcomes, the last marked": Kind(shared_months, depends=True),
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
    "competing event in another column": (two_ends, "other events"),
    "three classes in the reverse order": (reversed_classes, "permuted classes"),
    "predicted class for the label": (own_class, "predicted class"),
    "confidence for the probability": (of_answers, "confidences"),
    "three models pooled": (three_models, "several predictions of a row"),
    "answers of two models pooled": (two_models, "several models"),
    "leads pooled whose errors cancel, n / 4 days": (leads_apart, "several forecasts"),
    "percents below 1, 40 n rows": (of_percents, "percent below one"),
    "half of the events in the last six months (doubt)": (young_rows, "immature rows"),
    "days of five stations (doubt)": (days_of_stations, "dependent rows"),
    "answers of n items, 7 in 10 shared (doubt)": (shared_items, "dependent rows"),
}
TABLES = {
    "rain of at least 0.2 mm": Kind(rain),
    "a temperature of at least 15 °C": Kind(warmth),
    "one call or more, a count": Kind(counted),
    "a grade of at least 5, from 0 to 9": Kind(graded),
    "a laboratory value of at least 3": Kind(laboratory),
    "status 0 and 1, horizon in months": Kind(by_status),
    "status 0 and 1, horizon of a month": Kind(soon),
    "fractions in a column risk_pct": Kind(called_percent),
    "the highest of three grades": Kind(one_of_three),
    "a rare event among three states in words": Kind(in_words),
}
MISREAD_TABLES = {
    "rain, −99.9 where none was measured": Kind(rain, more=(-99.9,)),
    "temperature, 999": Kind(warmth, more=(999.0,)),
    "count, −9": Kind(counted, more=(-9.0,)),
    "laboratory value, −99": Kind(laboratory, more=(-99.0,)),
    "status 0, 1 and 2, a competing event": Kind(by_status, more=((0, 1, 2),)),
    "horizon of 2 years beside months": Kind(in_years),
    "the highest of three grades, 15 % unknown": Kind(one_of_three, more=(0.15,)),
    "percents below 1 in a column risk_pct": Kind(called_percent, more=(100.0,)),
    "a state that no row has, another word": Kind(in_words, more=("state = 'deceased'",)),
    "a state that no row has, in capitals": Kind(in_words, more=("state = 'DEAD'",)),
}
MODELS = {
    "two columns of one table, one label": Kind(in_columns),
    "two columns, a label of its own for each": Kind(own_outcomes),
    "rows of one long table, by a column": Kind(in_rows),
    "a file each, rows matched by id": Kind(in_files, more=("files", False, True)),
    "a file each, rows in the same order, no ids": Kind(in_files, more=("files", True)),
    "unpaired, as many rows, both numbered from 0": Kind(of_others),
    "unpaired, other numbers of rows": Kind(of_others, more=("others", False)),
    "unpaired, as many rows, rare events": Kind(of_others, more=("others", True, -4.0)),
}
MISREAD_MODELS = {
    "one model's label for both": Kind(own_outcomes, more=("right_a",)),
    "unpaired, though ids are shared": Kind(in_files, more=("others", False, True)),
    "unpaired, though rows are in the same order": Kind(in_files, more=("others", True)),
    "unpaired, rows in the same order, n = 30": Kind(in_files, more=("others", True, False, 30)),
    "paired, though the rows are others": Kind(of_others, more=("files",)),
}
DATA = (
    CALIBRATED
    | TABLES
    | MISREAD_TABLES
    | MODELS
    | MISREAD_MODELS
    | {
        f"{name}, n = {n}": Kind(draw, n, guard)
        for name, (draw, guard) in MISREAD.items()
        for n in SIZES
    }
)


def tests(kind):
    if kind in (*TABLES.values(), *MISREAD_TABLES.values()):
        return {"tables": kind.more}
    if kind in (*MODELS.values(), *MISREAD_MODELS.values()):
        return {"models": kind.more}
    return {"guards": kind.guard} | ({} if kind.n else {"arrays": ""})


def measure(kind, wanted, rng):
    """Return for every guard whether it raised a question, and whether the arrays alone did."""
    found = kind(rng)
    if isinstance(found, tuple) and isinstance(found[0], dict):
        raised = asked_of_table(*found)
        return {"tables": [float(guard in raised) for guard in OF_TABLES.values()]}
    if isinstance(found, tuple) and isinstance(found[0], str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"models": [float(asked_of_models(*found))]}
    alone = (found.probs, found.labels, found.weights) if isinstance(found, Rows) else found[:2]
    if isinstance(found, Rows):
        asked = [*spare_columns.questions(found)]
        asked += filter(None, [doubts.cumulative(found.probs)])
    else:
        p, seen, *more = found
        said = {"probs": "p", "event": "status"}
        asked = [*doubts.doubts_of_followup(p, seen, said=said)]
        beside = labelled(p, seen.labels, rng, **(more[0] if more else {}))
        beside = replace(beside, followed=True, said=said)
        asked += filter(None, [ends.other_events(beside, seen.event, seen.time)])
    raised = {"dependent rows" if q.guard == "feature" else q.guard for q in asked}
    found = {"guards": [float(guard in raised) for guard in (*ASKING, *DOUBTING)]}
    found["arrays"] = [float(any(q.asks for q in doubts.doubts_of_arrays(*alone)))]
    return {name: found[name] for name in wanted}


def page(found):
    """Return the page, and the cells that broke a promise."""
    calm = [name for name in CALIBRATED if name in found.shown]
    claims = len(calm) * (len(ASKING) + len(DOUBTING))
    broken, rows = [], []
    total, sets_in_all, of_arrays = np.zeros(len(ASKING) + 1), 0, 0
    for name in calm:
        means, sets = np.array(found.means(name, "guards")), found.trials(name, "guards")
        guards = ASKING if CALIBRATED[name].depends else (*ASKING, *DOUBTING)
        for guard, rate in zip(guards, means, strict=False):
            if rate > largest_rate(LIMIT, sets, claims):
                broken.append(f"{name}, {guard}: {rate:.4f}")
        counts = np.rint(means * sets).astype(int)
        total, sets_in_all = total + counts, sets_in_all + sets
        doubted = f"{counts[-1]} (rightly)" if CALIBRATED[name].depends else counts[-1]
        (alone,) = found.means(name, "arrays")
        if alone > largest_rate(LIMIT, sets, claims):
            broken.append(f"{name}, arrays: {alone:.4f}")
        of_arrays += round(alone * sets)
        rows.append([name, sets, *counts[:-1], round(alone * sets), doubted])
    rows.append(["all", sets_in_all, *total[:-1].astype(int), of_arrays, ""])
    lines = ["## False alarms: calibrated data", "", SIZE, ""]
    lines += table(["data", "data sets", *ASKING, "of arrays", "doubt: dependent rows"], rows)
    for title, text, kinds in (
        ("## False alarms: tables", TABLE, TABLES),
        ("## Power: misread tables", MISREAD_TABLE, MISREAD_TABLES),
    ):
        rows = []
        for name in (name for name in kinds if name in found.shown):
            means, sets = np.array(found.means(name, "tables")), found.trials(name, "tables")
            false = np.delete(means, [*OF_TABLES].index("percents by name")).max()
            if kinds is TABLES and false > largest_rate(LIMIT, sets, len(TABLES)):
                broken.append(f"{name}: {false:.4f}")
            rows.append([name, sets, *np.rint(means * sets).astype(int)])
        lines += ["", title, "", text, "", *table(["table", "tables", *OF_TABLES], rows)]
    for title, text, kinds in (
        ("## False alarms: two models to compare", MODEL, MODELS),
        ("## Power: models misread", MISREAD_MODEL, MISREAD_MODELS),
    ):
        rows = []
        for name in (name for name in kinds if name in found.shown):
            (rate,), sets = found.means(name, "models"), found.trials(name, "models")
            if kinds is MODELS and rate > largest_rate(LIMIT, sets, len(MODELS)):
                broken.append(f"{name}: {rate:.4f}")
            rows.append([name, sets, round(rate * sets)])
        lines += ["", title, "", text, "", *table(["models", "comparisons", "asked"], rows)]
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
TABLE = """Number of tables about whose columns or names a question is raised, of 60 to 5000 rows
(percentages from 30); the last column is a doubt. A rare event in words occurs in no row of some
small tables, which is no reason to ask. A column of further codes is always asked about:
a code may be a competing event or a way to be censored, which no data tell. So is a percentage by
name, unless its labels are 1000 times as likely for fractions: a small table of few events leaves
both open, and is no false alarm."""
MISREAD_TABLE = """The same of tables that are read wrongly; 3 % of the rows have a mark."""
MODEL = """Number of comparisons of two calibrated models in which reading them raises a question or
is refused, as `caltest compare` and `caltest gate` read them: 30 to 5000 rows, with the nine
further columns but where there are no ids."""
MISREAD_MODEL = """The same of comparisons that are asked for wrongly."""
POWER = """Share of data sets in which the guard raises its question. A misreading that no guard
notices is tested as it was given: with fewer than 250 rows check codes of censoring yourself. Rows
of one day have one common random number; three models predict n rows each, and two models answer n
questions each. Further columns cost power in small data sets, as rows that share a value may share
outcomes."""
HEADER = """# Guards, measured

A guard looks at predictions, outcomes and the columns that nobody named, and asks whether they are
meant otherwise. Questions about values above 1, about codes that are not 0 and 1, and about missing
outcomes follow from the values with certainty and are not simulated.

{made}

"""

STUDY = Study(
    "guards", DATA, tests, measure, page, sets=200, quick=10,
    times=dict.fromkeys((*CALIBRATED, *TABLES, *MODELS), 5),
)  # fmt: skip
if __name__ == "__main__":
    run(STUDY)
