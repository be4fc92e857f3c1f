"""Files whose right reading is known: 1000 tables of 100 kinds, names known and foreign.

A ``Case`` has the cells of a file, the rows that are its truth (probabilities of classes, labels or
follow-up), and the first commands of users: one who names columns as they are, and one who names
nothing. ``alike`` says whether rows that were read are the truth, or say the same of it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FILES = 1000
#: Names that the contract knows, and names that it does not.
KNOWN = {"p": ["p", "risk", "y_prob", "Probability"], "y": ["label", "y", "target", "Outcome"]}
FOREIGN = {
    "p": ["Risiko", "riesgo 5a", "確率", "phat", "yhat", "model_score", "prognose", "pred", "P(1)"],
    "y": ["Ereignis", "evento", "gestorben", "結果", "y_obs", "dead", "cancer", "default", "Q7"],
}
NAMES = {
    "time": ["zeit", "tiempo", "time", "dauer", "futime", "years", "AVAL"],
    "id": ["id", "nummer", "sujeto", "USUBJID", "row", "user"],
    "run": ["config", "mtry", "Modell", "seed", "variante", "learner", "imp", "fold_rep"],
    "split": ["split", "teil", "Set", "subset", "evaluationType", "particion", "dataset"],
}
WORDS = [("nein", "ja"), ("no", "sí"), ("GON-", "GON+"), ("alive", "dead"), ("B", "M"), ("1", "2")]


@dataclass
class Case:
    """A file of known truth."""

    kind: str
    cells: dict[str, Sequence[Any]]
    probs: np.ndarray
    labels: np.ndarray
    first: dict[str, str]
    followup: tuple[np.ndarray, np.ndarray, float] | None = None
    #: Whether the first command has to be answered.
    answers: bool = False
    #: Whether fewer or grouped rows of the same may be read instead (several predictions of a row).
    subsets: bool = False
    form: str = "csv"
    #: Weights of the rows, without which they say something else.
    weights: np.ndarray | None = None
    #: A column that decides, and that nothing but its foreign name tells from a feature.
    hidden: str = ""
    #: Words of the conditions that are true of the file: their commands are followed, and one of
    #: them ends in the right reading.
    holds: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        """Write the file and return its path."""
        path = folder / f"f.{self.form}"
        if self.form == "jsonl":
            rows = zip(*self.cells.values(), strict=True)
            lines = [json.dumps(dict(zip(self.cells, map(_plain, r), strict=True))) for r in rows]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            return path
        text = io.StringIO()
        writer = csv.writer(text, delimiter=";" if self.form == "txt" else ",")
        writer.writerow(self.cells)
        writer.writerows(zip(*self.cells.values(), strict=True))
        path.write_text(text.getvalue(), encoding="utf-8")
        return path

    def commands(self, path: Path) -> list[list[str]]:
        """Return the first commands that users try."""
        tries = [self.first, {}]
        words = []
        for options in tries:
            line = ["audit", str(path)]
            for name, value in options.items():
                line += [f"--{name.replace('_', '-')}", value]
            if line not in words:
                words.append(line)
        return words


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def quoted(name: str) -> str:
    """Return a name as an option takes it."""
    return f'"{name}"'


class Draw:
    """What all kinds begin with: names, risks with four digits, outcomes that agree with them."""

    def __init__(self, number: int) -> None:
        self.rng = rng = np.random.default_rng([2026, number])
        self.n = n = int(rng.choice([150, 400, 1000]))
        self.risk = np.round(rng.beta(1.0, 1.5, n), 4)
        self.y = (rng.random(n) < self.risk).astype(int)
        self.foreign = bool(number % 3)
        self.p_name, self.y_name = self.pick("p"), self.pick("y")
        self.base = {"probs": quoted(self.p_name), "label": quoted(self.y_name)}
        self.features: dict[str, Any] = {
            "alter": rng.integers(20, 90, n),
            "w1": np.round(rng.normal(size=n), 3),
            "sexo": rng.choice(["m", "w"], n),
        }

    def pick(self, what: str) -> str:
        """Return a name of a column, from inside the contract or not."""
        table = FOREIGN if self.foreign else KNOWN
        return str(self.rng.choice(table[what] if what in table else NAMES[what]))

    def case(self, kind: str, p: Any, y: Any, **more: Any) -> Case:
        """Return a file with the cells of probabilities and labels beside features."""
        cells = {self.p_name: p, self.y_name: y} | more.pop("cells", self.features)
        first = more.pop("first", self.base)
        return Case(kind, cells, self.risk, self.y, first, **more)


def plain(d: Draw) -> Case:
    return d.case("plain", d.risk, d.y, answers=True)


def unknown_word(d: Draw) -> Case:
    """The outcome in words, one of which says that it is not known, in no language in some."""
    d.n, d.risk = 1000, np.round(d.rng.beta(1.5, 1.5, 1000), 4)
    d.y = (d.rng.random(d.n) < d.risk).astype(int)
    d.features = {"sexo": d.rng.choice(["m", "w"], d.n)}
    mark = str(d.rng.choice(["unknown", "k. A.", "?", "zzz"]))
    lost = d.rng.random(d.n) < 0.2
    case = d.case("unknown word", d.risk, np.where(lost, mark, np.where(d.y, "krank", "gesund")))
    case.first = d.base | {"label": f"{quoted(d.y_name)} = 'krank'"}
    case.probs, case.labels = d.risk[~lost], d.y[~lost]
    case.holds = ("the outcome is not known there",)
    return case


def lone_confidence(d: Draw) -> Case:
    """Confidences in a predicted class that is in no column, beside the outcome."""
    d.n, d.risk = 1000, np.round(d.rng.beta(1.0, 1.5, 1000), 4)
    d.y = (d.rng.random(d.n) < d.risk).astype(int)
    d.p_name, d.y_name = "prob", str(d.rng.choice(["y_true", "label", "outcome"]))
    d.base = {"probs": d.p_name, "label": d.y_name}
    d.features = {"alter": d.rng.integers(20, 90, d.n)}
    return d.case("lone confidence", np.maximum(d.risk, 1 - d.risk), d.y)


def booleans(d: Draw) -> Case:
    return d.case("booleans", d.risk, np.where(d.y, "True", "False"), answers=True)


def complement(d: Draw) -> Case:
    return d.case("complement", np.round(1 - d.risk, 4), d.y)


def flipped(d: Draw) -> Case:
    return d.case("flipped", d.risk, 1 - d.y)


def percent(d: Draw) -> Case:
    return d.case("percent", np.round(100 * d.risk, 2), d.y)


def whole_percent(d: Draw) -> Case:
    d.risk = np.round(d.risk, 2)
    d.y = (d.rng.random(d.n) < d.risk).astype(int)
    return d.case("whole percent", np.rint(100 * d.risk).astype(int), d.y)


def mixed(d: Draw) -> Case:
    d.risk = np.round(np.clip(d.risk, 0.02, 0.98), 2)
    d.y = (d.rng.random(d.n) < d.risk).astype(int)
    cells = [f"{100 * r:.0f}" if k % 7 else f"{r:.2f}" for k, r in enumerate(d.risk)]
    return d.case("mixed", cells, d.y)


def words(d: Draw) -> Case:
    no, yes = WORDS[d.rng.integers(len(WORDS))]
    return d.case("words", d.risk, np.where(d.y, yes, no))


def missing(d: Draw) -> Case:
    cells = [str(v) for v in d.y]
    for k in (3, 17, 40):
        cells[k] = str(d.rng.choice(["", "NA"]))
    case = d.case("missing", d.risk, cells)
    keep = np.array([c in "01" and c != "" for c in cells])
    case.probs, case.labels = d.risk[keep], d.y[keep]
    return case


def _followed(d: Draw) -> tuple[np.ndarray, np.ndarray, str]:
    with np.errstate(divide="ignore"):
        time = d.rng.exponential(-5.0 / np.log1p(-np.clip(d.risk, 0.001, 0.999)))
    end = d.rng.uniform(2, 12, d.n)
    return np.round(np.minimum(time, end), 3), (time <= end).astype(int), d.pick("time")


def _follow(d: Draw, kind: str, p: Any, cells: Any, event: str | None = None) -> Case:
    time, seen, name = cells["time"], cells["seen"], cells["name"]
    first = {"probs": quoted(d.p_name), "event": event or quoted(d.y_name)}
    first |= {"time": quoted(name), "horizon": "5"}
    case = d.case(kind, p, cells["code"], cells={name: time, "alter": d.features["alter"]})
    case.first, case.followup = first, (time, seen, 5.0)
    return case


def followed(d: Draw) -> Case:
    time, seen, name = _followed(d)
    case = _follow(d, "followed", d.risk, {"time": time, "seen": seen, "name": name, "code": seen})
    case.answers = True
    case.hidden = name if name in ("zeit", "tiempo", "dauer") else ""
    return case


def followed_called_label(d: Draw) -> Case:
    time, seen, name = _followed(d)
    name = str(d.rng.choice(["time", "years", "futime", "followup"]))
    case = _follow(d, "label", d.risk, {"time": time, "seen": seen, "name": name, "code": seen})
    case.first, case.kind = d.base, "followed, named as a label"
    return case


def survival(d: Draw) -> Case:
    time, seen, name = _followed(d)
    told = {"time": time, "seen": seen, "name": name, "code": seen}
    return _follow(d, "survival", np.round(1 - d.risk, 4), told)


def censored(d: Draw) -> Case:
    d.n, d.risk = 1000, np.round(d.rng.beta(1.0, 1.5, 1000), 4)
    d.features = {"alter": d.rng.integers(20, 90, 1000)}
    time, seen, name = _followed(d)
    told = {"time": time, "seen": seen, "name": name, "code": 1 - seen}
    return _follow(d, "censored", d.risk, told)


def codes(d: Draw) -> Case:
    time, seen, name = _followed(d)
    told = {"time": time, "seen": seen, "name": name, "code": np.where(seen, 2, 1)}
    return _follow(d, "codes", d.risk, told)


def competing(d: Draw) -> Case:
    time, seen, name = _followed(d)
    other = (seen == 0) & (time < 5) & (d.rng.random(d.n) < 0.3)
    told = {"time": time, "seen": seen + 2 * other, "name": name}
    told["code"] = np.where(seen, 1, np.where(other, 2, 0))
    return _follow(d, "competing", d.risk, told)


def _two_ends(d: Draw) -> tuple[dict[str, Any], np.ndarray]:
    """Return follow-up of 1000 rows whose code 1 is the event, and 2 another end."""
    d.n, d.risk = 1000, np.round(d.rng.beta(1.0, 1.5, 1000), 4)
    d.features = {"alter": d.rng.integers(20, 90, 1000), "sexo": d.rng.choice(["m", "w"], 1000)}
    time, seen, name = _followed(d)
    other = d.rng.exponential(25.0, d.n)
    first = (other < time) & (other < 5)
    time, code = np.where(first, other.round(3), time), np.where(first, 2, seen)
    return {"time": time, "seen": code, "name": name, "code": (code == 1) * 1}, code


def competing_column(d: Draw) -> Case:
    """The competing event stands in a column of its own."""
    told, code = _two_ends(d)
    case = _follow(d, "competing column", d.risk, told)
    way = [(0, 1), ("", "x"), ("", "otra causa"), ("False", "True")][d.rng.integers(4)]
    case.cells |= {str(d.rng.choice(["otra", "Todesursache"])): np.where(code == 2, way[1], way[0])}
    case.cells |= {"sexo": d.features["sexo"]}
    case.holds = ("otra is a competing", "x is a competing", "otra causa is a competing")
    case.holds += ("Todesursache is a competing", "is the event and")
    return case


def causes(d: Draw) -> Case:
    """Who died of what is a second column, blank for the others."""
    told, code = _two_ends(d)
    told["code"] = np.where(code > 0, "ja", "nein")
    case = _follow(d, "causes", d.risk, told, f"{quoted(d.y_name)} = 'ja'")
    case.cells |= {"cause": np.array(["", "heart", "other"])[code], "sexo": d.features["sexo"]}
    case.holds = ("heart alone is the event", "heart is the event and other a competing")
    return case


def status_words(d: Draw) -> Case:
    told, code = _two_ends(d)
    told["code"] = np.array(["vivo", "muerte", "otra muerte"])[code]
    case = _follow(d, "status words", d.risk, told, f"{quoted(d.y_name)} = 'muerte'")
    case.cells |= {"hospital": np.array(["La Fe", "Norte"])[d.rng.integers(0, 2, d.n)]}
    case.holds = ("otra muerte is a competing", "muerte is the event and otra muerte a competing")
    return case


def answers(d: Draw) -> Case:
    ways = [("LABEL_", "01"), ("__label__", ["no", "yes"]), ("", ["NEG", "POS"]), ("class=", "ab")]
    prefix, ends = ways[d.rng.integers(4)]
    guess = (d.risk >= 0.5).astype(int)
    sure = np.round(np.where(guess, d.risk, 1 - d.risk), 4)
    truth = d.y if prefix in ("LABEL_", "") else np.array([*ends])[d.y]
    told = [prefix + [*ends][g] for g in guess]
    case = d.case("answers", sure, truth, cells={"vorhersage": told})
    case.probs, case.labels = sure, (guess == d.y).astype(int)
    return case


def answers_of_numbers(d: Draw) -> Case:
    """The predicted class is 0 or 1, as the label is; stated confidences may be below one half."""
    guess, low = d.rng.integers(0, 2, d.n), d.rng.choice([0.2, 0.5])
    sure = np.round(d.rng.uniform(low, 1.0, d.n), 2)
    right = (d.rng.random(d.n) < sure).astype(int)
    truth, words = np.where(right, guess, 1 - guess), d.rng.choice([["0", "1"], ["False", "True"]])
    names = [("choice", "conf", "target"), ("pred", "certainty", "truth"), ("y_pred", "score", "y")]
    a, p, y = names[d.rng.integers(3)]
    if p == "score" and low < 0.5:
        p = "confidence"
    told = [words[g] for g in guess]
    cells = {a: told, p: sure, y: [words[t] for t in truth]}
    return Case("answers of numbers", cells, sure, right, {"predicted_label": a, "probs": p})


def said_right(d: Draw) -> Case:
    d.p_name, d.y_name = "confidence", str(d.rng.choice(["correct", "is_correct"]))
    d.base = {}
    return d.case("confidence and whether it was right", d.risk, d.y, answers=True)


def repeated(d: Draw) -> Case:
    m, run, name = int(d.rng.integers(2, 6)), d.pick("run"), d.pick("id")
    order = d.rng.permutation(d.n * m) if d.rng.random() < 0.5 else np.arange(d.n * m)
    p = np.clip(np.tile(d.risk, m) + d.rng.normal(0, 0.01, d.n * m), 0, 1).round(4)
    told = {name: np.tile(np.arange(d.n), m), run: np.repeat([f"m{k}" for k in range(m)], d.n)}
    told |= {d.p_name: p, d.y_name: np.tile(d.y, m)}
    cells = {k: np.asarray(v)[order] for k, v in told.items()}
    return Case("repeated", cells, p[: d.n], d.y, d.base, subsets=True)


def train(d: Draw) -> Case:
    split, in_train = d.pick("split"), d.rng.random(d.n) < 0.6
    near = np.clip(np.where(d.y, 0.98, 0.02) + d.rng.normal(0, 0.005, d.n), 0, 1)
    p = np.where(in_train, near, d.risk).round(4)
    case = d.case("train", p, d.y, cells={split: np.where(in_train, "train", "test")})
    case.probs, case.labels = d.risk[~in_train], d.y[~in_train]
    return case


def train_flag(d: Draw) -> Case:
    in_train = d.rng.random(d.n) < 0.6
    near = np.clip(np.where(d.y, 0.98, 0.02) + d.rng.normal(0, 0.005, d.n), 0, 1)
    p = np.where(in_train, near, d.risk).round(4)
    case = d.case("train flag", p, d.y, cells={"is_train": in_train.astype(int)})
    case.probs, case.labels = d.risk[~in_train], d.y[~in_train]
    return case


def parts(d: Draw) -> Case:
    """Parts of a data set in other words than train and test; the model is fitted to the first."""
    listed = [("Entwicklung", "Validierung"), ("DEV", "OOT"), ("development", "holdout")]
    first, second = [*listed, ("desarrollo", "validación")][d.rng.integers(4)]
    fitted = d.rng.random(d.n) < 0.6
    near = np.clip(np.where(d.y, 0.98, 0.02) + d.rng.normal(0, 0.005, d.n), 0, 1)
    p = np.where(fitted, near, d.risk).round(4)
    name = str(d.rng.choice(["kohorte", "ds", "sample"]))
    case = d.case("parts", p, d.y, cells={name: np.where(fitted, first, second)})
    case.probs, case.labels, case.holds = d.risk[~fitted], d.y[~fitted], (f"the {second} rows",)
    return case


def leads(d: Draw) -> Case:
    """Forecasts of several leads for each day and station, with one outcome or one for each."""
    days, leads = 120, [24, 72, 120][: int(d.rng.integers(2, 4))]
    many, one = len(leads), bool(d.rng.integers(2))
    risk = np.round(d.rng.beta(1.0, 1.5, (days, 2, 1 if one else many)), 4)
    y = (d.rng.random(risk.shape) < risk).astype(int)
    shift = np.linspace(-0.15, 0.15, many)
    p = np.clip(risk + shift * (not one) + d.rng.normal(0, 0.01, (days, 2, many)), 0, 1).round(4)
    y = np.broadcast_to(y, p.shape)
    cells = {
        "init": np.repeat(
            [f"2024-{k // 28 + 1:02d}-{k % 28 + 1:02d}" for k in range(days)], 2 * many
        ),
        "station": np.tile(np.repeat(["A", "B"], many), days),
        "lead": np.tile(leads, 2 * days),
        d.p_name: p.ravel(),
        d.y_name: y.ravel(),
    }
    case = Case("leads", cells, p[:, :, 0].ravel(), y[:, :, 0].ravel(), d.base)
    case.holds = (f"only lead {leads[0]} is meant",)
    return case


def two_sets(d: Draw) -> Case:
    odds = np.log(np.clip(d.risk, 1e-3, 0.999) / (1 - np.clip(d.risk, 1e-3, 0.999)))
    raw = (1 / (1 + np.exp(-2 * odds))).round(4)
    cells = {"p0": (1 - raw).round(4), "p1": raw, "kal_p0": (1 - d.risk).round(4), "kal_p1": d.risk}
    return Case(
        "two sets", cells | {"y": d.y}, d.risk, d.y, {"probs": "kal_p0, kal_p1", "label": "y"}
    )


def predicted(d: Draw) -> Case:
    told = {"vorhersage": (d.risk >= 0.5).astype(int)}
    case = d.case("predicted class", d.risk, d.y, cells=told)
    case.first = {"probs": quoted(d.p_name), "label": "vorhersage"}
    return case


def pipeline(d: Draw) -> Case:
    guess = np.where(d.risk >= 0.5, "POSITIVE", "NEGATIVE")
    sure = np.round(np.where(d.risk >= 0.5, d.risk, 1 - d.risk), 4)
    cells = {"label": guess, "score": sure, "true_label": np.where(d.y, "POSITIVE", "NEGATIVE")}
    right = ((d.risk >= 0.5) == (d.y == 1)).astype(int)
    return Case("pipeline", cells, sure, right, {"probs": "score"})


def _classes(d: Draw, k: int) -> tuple[np.ndarray, np.ndarray]:
    P = np.round(d.rng.dirichlet(np.ones(k), d.n), 4)
    P[:, -1] = np.round(1 - P[:, :-1].sum(axis=1), 4)
    P = np.clip(P, 0, 1)
    return P, (P.cumsum(axis=1) > d.rng.random((d.n, 1))).argmax(axis=1)


def family(d: Draw) -> Case:
    P, k = _classes(d, 3)
    ends = np.array(["rot", "grün", "blau"])
    order = d.rng.permutation(3)
    cells = {f"p_{ends[j]}": P[:, j] for j in order}
    return Case(
        "family", cells | {"y": ends[k]}, P[:, order], np.argsort(order)[k], {}, answers=True
    )


def permuted(d: Draw) -> Case:
    """Columns of three classes that are called by each other's names."""
    d.n = 1000
    P, k = _classes(d, 3)
    ends, order = (
        np.array(["home", "draw", "away"]),
        np.array([[2, 1, 0], [1, 2, 0]][d.rng.integers(2)]),
    )
    numbers = bool(d.rng.integers(2))
    ends = np.array([0, 1, 2]) if numbers else ends
    cells = {f"p_{ends[j]}": P[:, order[j]] for j in range(3)} | {"label": ends[k]}
    case = Case("permuted", cells, P[:, order], np.argsort(order)[k], {})
    case.holds = ("not as they are called",)
    return case


def one_hot(d: Draw) -> Case:
    """A column of 0 and 1 for each class in the place of a label."""
    P, k = _classes(d, 3)
    ends = [["rot", "blau", "gelb"], ["0", "1", "2"]][d.rng.integers(2)]
    cells = {f"p_{end}": P[:, j] for j, end in enumerate(ends)}
    cells |= {f"ist_{end}": (k == j).astype(int) for j, end in enumerate(ends)}
    case = Case("one-hot", cells, P, k, {})
    case.holds = ("",)
    return case


def numbered(d: Draw) -> Case:
    P, k = _classes(d, 12)
    order = d.rng.permutation(12)
    cells = {f"p{j}": P[:, j] for j in order} | {"label": k}
    return Case("numbered", cells, P, k, {}, answers=True)


def shuffled_names(d: Draw) -> Case:
    P, k = _classes(d, 3)
    ends = np.array(["low", "mid", "high"])
    cells = {f"Pr({ends[j]})": P[:, j] for j in (2, 0, 1)} | {"grade": ends[k]}
    order = [2, 0, 1]
    first = {"probs": ", ".join(quoted(f"Pr({ends[j]})") for j in order), "label": "grade"}
    return Case("family, foreign", cells, P[:, order], np.argsort(order)[k], first)


def options_in_json(d: Draw) -> Case:
    P, k = _classes(d, 3)
    ends, orders = ["A", "B", "C"], [d.rng.permutation(3) for _ in range(d.n)]
    cells = {
        "options": [[ends[j] for j in o] for o in orders],
        "probs": [[float(P[i, j]) for j in o] for i, o in enumerate(orders)],
        "label": [ends[j] for j in k],
    }
    return Case("options in JSON", cells, P, k, {}, form="jsonl")


def cumulative(d: Draw) -> Case:
    P, k = _classes(d, 3)
    C = np.cumsum(P, axis=1).round(4)
    cells = {"c1": C[:, 0], "c2": C[:, 1], "c3": np.ones(d.n), "y": k}
    first = {"probs": "c1,c2,c3", "label": "y", "classes": "0,1,2"}
    return Case("cumulative", cells, P, k, first)


def semicolons(d: Draw) -> Case:
    cells = [f"{r:.4f}".replace(".", ",") for r in d.risk]
    return d.case("semicolons", cells, d.y, cells={}, answers=True, form="txt")


def followed_months(d: Draw) -> Case:
    """Whole months of follow-up under a foreign name, or one that says nothing, beside a label."""
    d.n, d.risk = 1000, np.round(d.rng.beta(1.0, 1.5, 1000), 4)
    d.features = {"alter": d.rng.integers(20, 90, 1000)}
    time, seen, _ = _followed(d)
    names = ["Monate", "meses", "suivi (mois)", "Beobachtungsdauer", "v12", "日数"]
    name = str(d.rng.choice(names))
    months = np.ceil(12 * time).astype(int)
    told = {"time": months, "seen": seen, "name": name, "code": seen}
    case = _follow(d, "months", d.risk, told)
    case.first, case.followup = d.base, (months, seen, 60.0)
    return case


def boxes(d: Draw) -> Case:
    """Detections: a blank truth is a false positive."""
    names = np.array(["car", "bus", "van"])
    guess, right = d.rng.integers(0, 3, d.n), d.rng.random(d.n) < d.risk
    none = ~right & (d.rng.random(d.n) < 0.6)
    truth = np.where(none, "", names[np.where(right, guess, (guess + 1) % 3)])
    found, gt = [("pred_class", "gt_class"), ("Klasse", "wahr"), ("det", "gt")][d.rng.integers(3)]
    cells = {found: names[guess], "score": d.risk, gt: truth, "image": d.rng.integers(0, 40, d.n)}
    first = {"predicted_label": found, "probs": "score", "label": gt}
    return Case("boxes", cells, d.risk, right.astype(int), first)


def free_text(d: Draw) -> Case:
    """Answers with full stops, brackets, capitals and blanks that are right."""
    towns = np.array(["Paris", "Rome", "Oslo", "Cairo", "Lima"])
    guess, right = d.rng.integers(0, 5, d.n), d.rng.random(d.n) < d.risk
    ways = ["{}", "{}.", " {} ", "({})", "**{}**"]
    told = [ways[d.rng.integers(5)].format(towns[g]) for g in guess]
    truth = towns[np.where(right, guess, (guess + 1) % 5)]
    a, p, y = [("answer", "confidence", "gold"), ("output", "conf", "reference")][d.rng.integers(2)]
    first = [{"predicted_label": a, "label": y}, {"label": f"{a} = {y}"}][d.rng.integers(2)]
    first |= {"probs": p}
    return Case("free text", {a: told, p: d.risk, y: truth}, d.risk, right.astype(int), first)


def threshold(d: Draw) -> Case:
    """The probability of one class beside the predicted class in words."""
    no, yes = [("No", "Yes"), ("stays", "leaves")][d.rng.integers(2)]
    told = np.where(d.risk > 0.5, yes, no)
    truth = np.where(d.y, yes, no)
    cells = {"prob": d.risk, "predicted": told, "churned": truth}
    first = {"probs": "prob", "label": "churned", "predicted_label": "predicted"}
    return Case("threshold", cells, d.risk, d.y, first)


def answer_pairs(d: Draw) -> Case:
    """Whole percents of confidence beside an answer and the truth, some of them blank."""
    P = np.rint(100 * d.risk).astype(int)
    letters, guess = np.array([*"ABCD"]), d.rng.integers(0, 4, d.n)
    right = d.rng.random(d.n) < P / 100
    truth = letters[np.where(right, guess, (guess + 1) % 4)]
    out = d.rng.random(d.n) < 0.04
    cells = {
        "answer": np.where(out, "", letters[guess]),
        "confidence": np.where(out, "", P),
        "correct_answer": truth,
    }
    first = {"predicted_label": "answer"}
    return Case("answer pairs", cells, P[~out] / 100, right[~out].astype(int), first)


def clicks(d: Draw) -> Case:
    """Clicks that are 1 or blank."""
    cells = {"ad": d.rng.integers(0, 50, d.n), "pctr": d.risk, "click": np.where(d.y, "1", "")}
    return Case("clicks", cells, d.risk, d.y, {"probs": "pctr", "label": "click"})


def basis_points(d: Draw) -> Case:
    d.risk = np.round(d.risk * 0.09, 5)
    d.y = (d.rng.random(d.n) < d.risk).astype(int)
    cells = {"pd_bps": np.round(1e4 * d.risk, 1), "ausgefallen": d.y}
    return Case("basis points", cells, d.risk, d.y, {"probs": "pd_bps", "label": "ausgefallen"})


def terciles(d: Draw) -> Case:
    """Whole percents of three classes beside the class that was observed."""
    P, _ = _classes(d, 3)
    whole = np.rint(100 * P).astype(int)
    whole[:, 2] = 100 - whole[:, 0] - whole[:, 1]
    whole = np.clip(whole, 0, 100)
    whole[:, 0] = 100 - whole[:, 1] - whole[:, 2]
    k = (whole.cumsum(axis=1) > 100 * d.rng.random((d.n, 1))).argmax(axis=1)
    names = np.array(["below", "normal", "above"])
    cells = {name: whole[:, j] for j, name in enumerate(names)} | {"beobachtet": names[k]}
    first = {"probs": "below, normal, above", "label": "beobachtet"}
    return Case("terciles", cells, whole / 100, k, first)


def tenths(d: Draw) -> Case:
    """Three classes in tenths, and amounts of rain that are no percents."""
    d.n = 400
    parts = d.rng.multinomial(10, d.rng.dirichlet((4, 4, 4), d.n))
    k = (parts.cumsum(axis=1) > 10 * d.rng.random((d.n, 1))).argmax(axis=1)
    names = np.array(["below", "normal", "above"])
    cells = {name: parts[:, j] for j, name in enumerate(names)} | {"beobachtet": names[k]}
    cells |= {"rain_mm": np.round(d.rng.exponential(8.0, d.n), 1)}
    first = {"probs": "below, normal, above", "label": "beobachtet"}
    return Case("tenths", cells, parts / 10, k, first)


def comma_percents(d: Draw) -> Case:
    """Percents with decimal commas and signs."""
    p = np.round(100 * d.risk, 1)
    d.y = (d.rng.random(d.n) < p / 100).astype(int)
    sign = str(d.rng.choice(["%", " %"]))
    cells = [f"{v:.1f}{sign}".replace(".", ",") for v in p]
    case = d.case("comma percents", cells, d.y, cells={"x": d.features["alter"]}, form="txt")
    case.probs, case.holds = p / 100, ("",)
    return case


def verdicts(d: Draw) -> Case:
    """Confidences beside words that say whether answers were right, some not attempted."""
    sure = d.rng.integers(4, 20, d.n) * 5
    right, out = d.rng.random(d.n) < sure / 100, d.rng.random(d.n) < 0.12
    words = np.where(out, "NOT_ATTEMPTED", np.where(right, "CORRECT", "INCORRECT"))
    cells = {
        "problem": [f"q{k}" for k in range(d.n)],
        "target": [f"t{k}" for k in range(d.n)],
        "confidence": [None if o else int(c) for o, c in zip(out, sure, strict=True)],
        "grade": words,
    }
    case = Case("verdicts", cells, sure[~out] / 100, right[~out].astype(int), {}, form="jsonl")
    case.holds = ("CORRECT says that an answer was right",)
    return case


def sampled(d: Draw) -> Case:
    """Rows without the event were sampled and have weights."""
    n = 20_000
    p = np.round(d.rng.beta(1.0, 30.0, n), 5)
    y = (d.rng.random(n) < p).astype(int)
    kept = (y == 1) | (d.rng.random(n) < 0.1)
    weights = np.where(y == 1, 1, 10)[kept]
    cells = {"p": p[kept], "y": y[kept], str(d.rng.choice(["w", "weight", "n_rows"])): weights}
    case = Case("sampled", cells, p[kept], y[kept], {"probs": "p", "label": "y"})
    case.weights = weights
    return case


def percent_signs(d: Draw) -> Case:
    p = np.rint(100 * d.risk).astype(int)
    d.y = (d.rng.random(d.n) < p / 100).astype(int)
    cells = {"Dem %": [f"{v}%" for v in p], "Rep %": [f"{100 - v}%" for v in p]}
    cells |= {"Winner": np.where(d.y, "Democrat", "Republican"), "cycle": d.rng.integers(1, 5, d.n)}
    first = {"probs": '"Dem %"', "label": "Winner = 'Democrat'"}
    return Case("percent signs", cells, p / 100, d.y, first, answers=True)


def likert(d: Draw) -> Case:
    """Columns in words, and labels from 1 that number them."""
    d.n = 1000
    P, k = _classes(d, 5)
    names = ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]
    cells = {name: P[:, j] for j, name in enumerate(names)} | {"response": k + 1}
    case = Case("likert", cells, P, k, {}, holds=("1 to 5 number the columns in their order",))
    case.first = {"probs": ", ".join(map(quoted, names)), "label": "response"}
    return case


def exceedances(d: Draw) -> Case:
    """Probabilities of at least the classes 1, 2 and 3 of 0 to 3."""
    d.n = 1000
    P, k = _classes(d, 4)
    above = np.clip(np.round(1.0 - P.cumsum(axis=1)[:, :3], 4), 0.0, 1.0)  # P sums to 1.0001
    cells = {f"p_ge{j + 1}": above[:, j] for j in range(3)} | {"label": k}
    case = Case("exceedances", cells, P, k, {})
    case.holds = ("are probabilities of at least that class",)
    return case


def by_alphabet(d: Draw) -> Case:
    """Numbers of classes that were sorted by their names, as encoders of labels do."""
    d.n = 1000
    P, k = _classes(d, 4)
    names = ["zebra", "ant", "monkey", "bear"]
    rank = np.argsort(np.argsort(names))
    cells = {f"prob_{name}": P[:, j] for j, name in enumerate(names)} | {"label": rank[k]}
    case = Case("classes by alphabet", cells, P, k, {})
    case.holds = ("0 to 3 number the classes in alphabetical order",)
    return case


def top_two(d: Draw) -> Case:
    """The two likeliest of five classes with their probabilities."""
    d.n = 1000
    P, k = _classes(d, 5)
    order, rows = np.argsort(-P, axis=1), np.arange(d.n)
    cells = {"id": [f"i{j}" for j in rows]}
    for place in (0, 1):
        cells[f"top{place + 1}"] = order[:, place]
        cells[f"top{place + 1}_prob"] = P[rows, order[:, place]]
    case = Case("top two", cells | {"label": k}, P.max(axis=1), (order[:, 0] == k).astype(int), {})
    case.holds = ("top1_prob is the confidence in top1",)
    return case


def two_models(d: Draw) -> Case:
    """Predictions before and after recalibration, called like two classes."""
    raw = np.round(d.risk**2 / (d.risk**2 + (1 - d.risk) ** 2), 4)
    cells = {"p_raw": raw, "p_calibrated": d.risk, "label": d.y}
    return Case("two models", cells, d.risk, d.y, {}, holds=("p_calibrated is the prediction",))


def log_probabilities(d: Draw) -> Case:
    P, k = _classes(d, 4)
    P = np.clip(P, 1e-4, 1.0)
    P = P / P.sum(axis=1, keepdims=True)
    cells = {f"logprob_{j + 1}": np.round(np.log(P[:, j]), 6) for j in range(4)}
    return Case("log-probabilities", cells | {"target": k + 1}, P, k, {}, holds=("",))


def thousandths(d: Draw) -> Case:
    p = np.round(d.risk, 3)
    y = (d.rng.random(d.n) < p).astype(int)
    cells = {"account": d.rng.integers(0, 90, d.n), "risk_score": np.rint(1000 * p).astype(int)}
    case = Case("thousandths", cells | {"chargeback": y}, p, y, {})
    case.holds = ("risk_score is a probability in thousandths",)
    return case


def members(d: Draw) -> Case:
    """Members of an ensemble that predict the event, of all members."""
    size = int(d.rng.choice([20, 50]))
    k = np.rint(size * d.risk).astype(int)
    y = (d.rng.random(d.n) < k / size).astype(int)
    cells = {"members_yes": k, "members": np.full(d.n, size), "rain": y}
    case = Case("members", cells, k / size, y, {})
    case.holds = ("members_yes of members is the share of an ensemble",)
    return case


def named_horizon(d: Draw) -> Case:
    """Risks whose name says by when the event is predicted, and follow-up in another unit."""
    time, seen, _ = _followed(d)
    unit = str(d.rng.choice(["years", "months", "days"]))
    scale = {"years": 1.0, "months": 12.0, "days": 365.25}[unit]
    cells = {"risk_5y": d.risk, f"followup_{unit}": np.round(scale * time, 3), "died": seen}
    horizon = {"years": 5.0, "months": 60.0, "days": 1826.0}[unit]
    case = Case("named horizon", cells, d.risk, seen, {})
    case.holds = (f"risk_5y is the risk by time {horizon:g}",)
    case.followup = (np.round(scale * time, 3), seen, horizon)
    return case


def _american(p: np.ndarray) -> np.ndarray:
    """Return American odds, whole numbers, of probabilities."""
    p = np.clip(p, 0.04, 0.96)
    return np.rint(np.where(p >= 0.5, -100 * p / (1 - p), 100 * (1 - p) / p)).astype(int)


def american_odds(d: Draw) -> Case:
    """American odds of one side of a game, or of both with the margin of a bookmaker."""
    d.n, p = 1000, np.clip(d.rng.beta(2.0, 2.0, 1000), 0.06, 0.94)
    sides = [_american(np.clip(1.04 * side, 0.05, 0.95)) for side in (p, 1 - p)]
    implied = [np.where(x < 0, -x, 100) / (np.abs(x) + 100) for x in sides]
    both = bool(d.rng.random() < 0.5)
    q = implied[0] / (implied[0] + implied[1]) if both else implied[0]
    y = (d.rng.random(d.n) < q).astype(int)
    cells = {"home_ml": [f"{x:+d}" if both else str(x) for x in sides[0]]}
    cells |= {"away_ml": [f"{x:+d}" for x in sides[1]]} if both else {}
    case = Case("American odds", cells | {"home_win": y}, q, y, {}, holds=("American odds",))
    case.first = {} if both else {"probs": "home_ml", "label": "home_win"}
    return case


def decimal_odds(d: Draw) -> Case:
    """Decimal odds of three results with a margin, beside the letters of the results."""
    d.n, P = 1000, d.rng.dirichlet((4, 3, 3), 1000)
    odds = np.round(1 / np.clip(1.05 * P, 0.01, 0.999), 2)
    P = 1 / odds / (1 / odds).sum(axis=1, keepdims=True)
    k = (P.cumsum(axis=1) > d.rng.random((d.n, 1))).argmax(axis=1)
    cells = {"HomeTeam": d.rng.choice(["Arsenal", "Everton", "Leeds"], d.n)}
    cells |= {"FTR": np.array(["H", "D", "A"])[k]}
    cells |= {f"B365{side}": odds[:, j] for j, side in enumerate(("H", "D", "A"))}
    return Case("decimal odds", cells, P, k, {}, holds=("",))


def odds_of_players(d: Draw) -> Case:
    """Decimal odds of two players, whose names are cells."""
    d.n, p = 1000, np.clip(d.rng.beta(2.0, 2.0, 1000), 0.05, 0.95)
    odds = [np.round(1 / np.clip(1.04 * side, 0.02, 0.98), 2) for side in (p, 1 - p)]
    q = 1 / odds[0] / (1 / odds[0] + 1 / odds[1])
    y = (d.rng.random(d.n) < q).astype(int)
    names = np.array(["Federer", "Nadal", "Raonic", "Murray"])
    first = d.rng.integers(0, 4, d.n)
    sides = [names[first], names[(first + d.rng.integers(1, 4, d.n)) % 4]]
    cells = {"p1": sides[0], "p2": sides[1], "odds_p1": odds[0], "odds_p2": odds[1]}
    cells |= {"winner": np.where(y, *sides)}
    return Case("odds of players", cells, q, y, {}, holds=("hold decimal odds",))


def raw_scores(d: Draw) -> Case:
    """Log-odds beside labels of −1 and 1, and amounts."""
    d.n, p = 1000, np.clip(d.rng.beta(1.0, 4.0, 1000), 0.001, 0.6)
    raw = np.round(np.log(p / (1 - p)), 4)
    p = 1 / (1 + np.exp(-raw))
    y = (d.rng.random(d.n) < p).astype(int)
    cells = {"raw_score": raw, "label": 2 * y - 1}
    cells |= {"bid": np.round(d.rng.gamma(2.0, 0.8, d.n), 3)} if d.rng.random() < 0.5 else {}
    return Case("raw scores", cells, p, y, {}, holds=("raw_score holds log-odds",))


def rows_of_models(d: Draw) -> Case:
    """Predictions of one event by two models, in rows below each other."""
    other = np.round(np.clip(d.risk + d.rng.normal(0, 0.05, d.n), 0.001, 0.999), 4)
    cells = {"req": [*range(d.n), *range(d.n)], "model": ["A"] * d.n + ["B"] * d.n}
    cells |= {"score": np.concatenate([d.risk, other]), "clicked": np.tile(d.y == 1, 2)}
    return Case("rows of models", cells, d.risk, d.y, {}, subsets=True, holds=("",))


def bracketed(d: Draw) -> Case:
    """Columns such as P(agree) beside labels in words."""
    d.n = 1000
    P, k = _classes(d, 3)
    names = np.array(["disagree", "neutral", "strongly agree"])
    cells = {f"P({name})": P[:, j] for j, name in enumerate(names)} | {"response": names[k]}
    return Case("bracketed", cells, P, k, {}, holds=("",))


def initials(d: Draw) -> Case:
    """Labels that are the first letters of the columns."""
    case = terciles(d)
    column = np.char.upper(case.cells.pop("beobachtet").astype("U1"))
    case.cells |= {"observed": column}
    case.kind, case.holds, case.first = "initials", ("are short for",), {}
    return case


def tenths_in_words(d: Draw) -> Case:
    """Confidences such as 8/10 beside answers and the truth, one word of which is all in some."""
    sure = d.rng.integers(2, 11, d.n)
    right = (d.rng.random(d.n) < sure / 10).astype(int)
    words = np.array(["Lyon", "Paris", "Nice"])
    truth = np.full(d.n, 1) if d.rng.random() < 0.5 else d.rng.integers(0, 3, d.n)
    guess = np.where(right, truth, (truth + d.rng.integers(1, 3, d.n)) % 3)
    cells = {"stated_confidence": [f"{k}/10" for k in sure], "model_answer": words[guess]}
    cells |= {"gold_answer": words[truth]}
    case = Case("tenths in words", cells, sure / 10, right, {})
    case.holds = ("is the confidence in model_answer",)
    return case


def cents(d: Draw) -> Case:
    """Prices of contracts in cents."""
    d.n, price = 1000, d.rng.integers(5, 94, 1000)
    y = (d.rng.random(d.n) < price / 100).astype(int)
    cells = {"price_cents": price, "resolution": np.where(y, "YES", "NO")}
    case = Case("cents", cells, price / 100, y, {})
    case.holds = ("YES is the event and price_cents is a probability in percent",)
    return case


def votes(d: Draw) -> Case:
    """Votes for and against, counted or one column a rater."""
    each = d.rng.random((d.n, 5)) < d.risk[:, None]
    cells: dict[str, Any] = {"item": [*range(d.n)], "prob_animal": d.risk}
    if d.rng.random() < 0.5:
        cells |= {"votes_yes": each.sum(axis=1), "votes_no": 5 - each.sum(axis=1)}
    else:
        cells |= {f"rater{j + 1}": np.where(each[:, j], "yes", "no") for j in range(5)}
    case = Case("votes", cells, np.repeat(d.risk, 5), np.sort(each, axis=1).ravel() * 1, {})
    case.holds = ("count the votes on each row", "rater1 to rater5 are votes on each row")
    return case


def ensemble(d: Draw) -> Case:
    """Predictions of ten members, of which the mean is calibrated."""
    d.n, p = 1000, d.rng.beta(1.0, 1.5, 1000)
    members = np.round(np.clip(p[:, None] + d.rng.normal(0, 0.03, (d.n, 10)), 0, 1), 3)
    mean = members.mean(axis=1)
    y = (d.rng.random(d.n) < mean).astype(int)
    cells = {"site": [*range(d.n)]} | {f"rf_{j:02d}": members[:, j] for j in range(10)}
    cells |= {"occurrence": np.where(y, "present", "absent")}
    case = Case("ensemble", cells, mean, y, {})
    case.holds = ("present is the event and rf_00 to rf_09 are members of an ensemble",)
    return case


def named_threshold(d: Draw) -> Case:
    """A probability whose name says from which amount on the event occurs."""
    d.n, p = 1000, np.round(d.rng.beta(1.0, 2.0, 1000), 2)
    y = (d.rng.random(d.n) < p).astype(int)
    gust = np.round(np.where(y, 20 + d.rng.exponential(3, d.n), d.rng.uniform(3, 19.9, d.n)), 1)
    cells = {"icao": ["EHAM"] * d.n, "P_gust_ge_20ms": p, "gust_ms": gust}
    return Case("named threshold", cells, p, y, {}, holds=("the event is gust_ms >= 20",))


def code_of_three(d: Draw) -> Case:
    """J, N, or not known; the code with higher predictions is printed."""
    d.n, p = 1000, np.round(100 * d.rng.beta(1.0, 2.0, 1000), 1)
    y, lost = (d.rng.random(d.n) < p / 100).astype(int), d.rng.random(d.n) < 0.03
    cells = {"Score in %": p, "Betrugsfall (J/N)": np.where(lost, "k.A.", np.where(y, "J", "N"))}
    case = Case("code of three", cells, p[~lost] / 100, y[~lost], {})
    case.holds = ("J is the event", "the outcome is not known there")
    return case


def named_survival(d: Draw) -> Case:
    """Probabilities to survive 24 months, in a column called OS24."""
    d.n, d.risk = 1000, np.round(d.rng.beta(1.0, 1.5, 1000), 4)
    time, seen, _ = _followed(d)
    months = np.round(time * 24 / 5, 3)
    cells = {"OS24_predicted": np.round(1 - d.risk, 4), "OS (months)": months}
    cells |= {"Vital status": np.where(seen, "Dead", "Alive")}
    case = Case("named survival", cells, d.risk, seen, {})
    case.holds = ("OS24_predicted is the probability of survival to time 24",)
    case.followup = (months, seen, 24.0)
    return case


def stray_column(d: Draw) -> Case:
    """A column that is called like a class, and holds none."""
    d.n = 400
    P, k = _classes(d, 3)
    ends = np.array(["cat", "dog", "fox"])
    cells: dict[str, Any] = {f"p_{end}": P[:, j] for j, end in enumerate(ends)}
    stray = str(d.rng.choice(["p_value", "prob_mass", "p_rank", "p_id"]))
    noise: Any = np.round(d.rng.random(d.n), 4)
    noise = d.rng.integers(1, 50, d.n) if stray == "p_rank" else noise
    noise = [f"a{j}" for j in range(d.n)] if stray == "p_id" else noise
    if d.rng.random() < 0.3:
        cells = {name: np.round(100 * p, 2) for name, p in cells.items()}
    return Case("stray column", cells | {stray: noise, "label": ends[k]}, P, k, {}, holds=("",))


def verdict_beside_answer(d: Draw) -> Case:
    """Answers and confidences that are numbers, both as text, and whether answers were right."""
    sure = d.rng.integers(2, 20, d.n) * 5
    right = (d.rng.random(d.n) < sure / 100).astype(int)
    cells = {"qid": [f"q{j}" for j in range(d.n)]}
    cells["answer"] = [str(j) for j in d.rng.integers(0, 100, d.n)]
    cells |= {"confidence": [str(j) for j in sure]}
    cells |= {"verdict": np.array(["incorrect", "correct"])[right]}
    case = Case("verdict beside answer", cells, sure / 100, right, {}, form="jsonl")
    case.holds = ("correct is the event",)
    return case


def opponents(d: Draw) -> Case:
    """Two columns of the same words, which are never equal: no answers and truths."""
    names = np.array([f"pl{j}" for j in range(12)])
    first = d.rng.integers(0, 12, d.n)
    cells = {"player": names[first], "opponent": names[(first + d.rng.integers(1, 12, d.n)) % 12]}
    day = [f"2024-{j % 12 + 1:02d}-{j % 28 + 1:02d}" for j in range(d.n)]
    cells |= {"made": day, "played": [*day[7:], *day[:7]]}
    return Case("opponents", cells | {"win_prob": d.risk, "won": d.y}, d.risk, d.y, {}, holds=("",))


def two_thresholds(d: Draw) -> Case:
    """Probabilities of two amounts, whose names say which, and the amount."""
    mm = np.where(d.y, 2.1 + d.rng.exponential(6.0, d.n), d.rng.uniform(0, 2, d.n)).round(1)
    cells = {"p_gt_2mm": d.risk, "p_gt_10mm": np.round(d.risk * np.exp(-8 / 6), 4), "obs_mm": mm}
    return Case("two thresholds", cells, d.risk, d.y, {}, holds=("the event is obs_mm > 2",))


def code_of_no_class(d: Draw) -> Case:
    """Classes 1 to 5 and a code that says that the class is not known, beside other letters."""
    d.n = 1000
    P, k = _classes(d, 5)
    ways = [("p_birads", "birads", "9"), ("prob_grade_", "grade", "99"), ("p_", "klasse", "0")]
    stem, name, code = ways[d.rng.integers(3)]
    lost = d.rng.random(d.n) < 0.05
    cells: dict[str, Any] = {f"{stem}{j + 1}": P[:, j] for j in range(5)}
    cells |= {
        name: np.where(lost, code, (k + 1).astype(str)),
        "density": d.rng.choice([*"abcd"], d.n),
    }
    case = Case("code of no class", cells, P[~lost], k[~lost], {})
    case.holds = (f"the class is not known where {name} is {code}",)
    return case


def findings(d: Draw) -> Case:
    """Three labels of a row: the first finding alone is the truth that is looked for."""
    n, names = d.n, ["effusion", "nodule", "edema"]
    P = np.round(d.rng.beta(1.0, 3.0, (n, 3)), 4)
    Y = (d.rng.random((n, 3)) < P).astype(int)
    way = [("p_{}", "{}"), ("{}_prob", "{}"), ("pred_{}", "obs_{}"), ("{}_score", "{}_true")]
    p, y = way[d.rng.integers(4)]
    cells = {p.format(a): P[:, j] for j, a in enumerate(names)}
    cells |= {y.format(a): Y[:, j] for j, a in enumerate(names)}
    case = Case("findings", cells, P[:, 0], Y[:, 0], {})
    case.holds = (f"{y.format('effusion')} is the only outcome",)
    return case


def versions(d: Draw) -> Case:
    """Three versions of a model in columns called like classes, beside two outcomes."""
    odds = np.log(np.clip(d.risk, 1e-3, 0.999) / (1 - np.clip(d.risk, 1e-3, 0.999)))
    more = [(1 / (1 + np.exp(-odds * b))).round(4) for b in (0.5, 2.0)]
    cells = {"prob_fraud": d.risk, "prob_fraud_prev": more[0], "prob_fraud_v2": more[1]}
    cells |= {"fraud_flag": d.y, "chargeback": d.y * (d.rng.random(d.n) < 0.9)}
    case = Case("versions", cells, d.risk, d.y, {})
    case.holds = ("fraud_flag is the outcome and prob_fraud is the prediction",)
    return case


def listed_logs(d: Draw) -> Case:
    """Log-probabilities of options in lists, up to a constant, the options in one order or many."""
    P, k = _classes(d, 4)
    logs = np.round(np.log(np.clip(P, 1e-4, 1.0)) - d.rng.uniform(5.0, 9.0, (d.n, 1)), 5)
    P = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    order = np.tile(np.arange(4), (d.n, 1))
    if d.rng.random() < 0.4:
        order = d.rng.permuted(order, axis=1)
    letters, rows = [*"ABCD"], range(d.n)
    cells = {"id": [*rows], "options": [[letters[j] for j in order[i]] for i in rows]}
    cells |= {"logprobs": [[float(logs[i, j]) for j in order[i]] for i in rows]}
    cells |= {"gold": [letters[j] for j in k], "prediction": [letters[j] for j in P.argmax(axis=1)]}
    case = Case("listed logs", cells, P, k, {}, form="jsonl")
    case.holds = ("are log-probabilities of the classes",)
    return case


def weeks(d: Draw) -> Case:
    """Intervals for a target week that were made in an earlier one: no shares of an ensemble."""
    target = np.arange(d.n) // 4 + 10
    cells = {"target_week": target, "made_week": target - 1 - np.arange(d.n) % 4}
    centre = d.rng.normal(100, 10, d.n).round(1)
    cells |= {"lower_90": centre - 12.0, "upper_90": centre + 12.0}
    cells |= {"observed": (centre + d.rng.normal(0, 7, d.n)).round(1)}
    return Case("weeks", cells, np.zeros(0), np.zeros(0), {})


def two_events(d: Draw) -> Case:
    """Predictions of a frequent and of a rare event, and both outcomes."""
    d.n, p = 4000, np.round(d.rng.beta(2.0, 6.0, 4000), 4)
    q = np.round(p * 0.02, 5)
    y = (d.rng.random(d.n) < p).astype(int)
    z = ((d.rng.random(d.n) < q / p) & (y == 1)).astype(int)
    cells = {"pctr": p, "pcvr": q, "click": y, "conversion": z}
    case = Case("two events", cells, p, y, {"probs": "pcvr", "label": "click"})
    case.holds = ("click is the outcome and pctr", "pctr is the prediction")
    return case


def young_loans(d: Draw) -> Case:
    """Loans of 24 months, of which those of the last year are not mature; and days overdue."""
    d.n = 4000
    p = np.round(d.rng.beta(1.0, 12.0, d.n), 4)
    month = d.rng.integers(0, 24, d.n)
    old = month < 12
    y = (d.rng.random(d.n) < p) * np.where(old, 1, d.rng.random(d.n) < 0.4)
    late = np.where(y == 1, d.rng.integers(90, 200, d.n), d.rng.integers(0, 60, d.n))
    cells = {d.p_name: p, d.y_name: y.astype(int), "max_dpd": late, "mature": old.astype(int)}
    cells |= {"month": [f"{2022 + k // 12}-{1 + k % 12:02d}" for k in month]}
    return Case("young loans", cells, p[old], y.astype(int)[old], d.base)


def years_beside_months(d: Draw) -> Case:
    """A horizon in years that is given beside follow-up in months, with many events after it."""
    d.n, d.risk = 1000, np.round(d.rng.beta(2.0, 5.0, 1000), 4)
    months = 60.0 * d.rng.exponential(1.0, d.n) / -np.log1p(-np.minimum(d.risk, 0.999))
    seen, months = (months < 110.0).astype(int), np.maximum(np.minimum(months, 110.0), 0.1).round(1)
    first = {"probs": "risk_5y", "event": "died", "time": "months", "horizon": "5"}
    cells = {"risk_5y": d.risk, "months": months, "died": seen}
    case = Case("years beside months", cells, d.risk, seen, first)
    case.holds = ("risk_5y is the risk by time 60",)
    case.followup = months, seen, 60.0
    return case


def revised_forecasts(d: Draw) -> Case:
    """Daily forecasts of questions, each of which begins on another day."""
    k, t = 90, 12
    p = np.clip(d.rng.random((k, 1)) + d.rng.normal(0, 0.05, (k, t)), 0.01, 0.99).round(4)
    y, begun = (d.rng.random(k) < p[:, 0]).astype(int), np.arange(k) * 3
    days = np.datetime64("2024-01-01") + begun[:, None] + np.arange(t)
    cells = {"question": np.repeat(np.arange(k), t), "day": days.ravel().astype(str)}
    cells |= {d.p_name: p.ravel(), d.y_name: np.repeat(y, t)}
    case = Case("revised forecasts", cells, p.ravel(), np.repeat(y, t), d.base, subsets=True)
    case.holds = ("all rows are meant, clustered by question",)
    return case


def lost_rain(d: Draw) -> Case:
    """Rain at two lead times, of which a user wants one, and marks where it was not measured."""
    mm = d.rng.gamma(0.6, 3.0, 600).round(1)
    p, lead = np.round(d.rng.random(600), 4), np.tile([24, 48], 300)
    mm = np.where(d.rng.random(600) < 0.03, -99.0, mm)
    known = (mm > -99.0) & (lead == 24)
    cells = {d.p_name: p, "mm": mm, "lead": lead}
    first = {"probs": d.base["probs"], "label": "mm >= 0.2", "where": "mm > -99 AND lead = 24"}
    return Case("lost rain", cells, p[known], (mm >= 0.2)[known].astype(int), first)


def _feature(d: Draw, z: np.ndarray, noise: float) -> np.ndarray:
    """Return fractions that follow z, with noise of so many standard deviations of it."""
    x = (z - z.mean()) / z.std() + noise * d.rng.normal(size=d.n)
    return np.round(1 / (1 + np.exp(-np.clip(x, -30, 30))), 4)


def beside_a_fraction(d: Draw) -> Case:
    """Predictions in percent, thousandths or basis points, beside a feature that is a fraction."""
    d.n, risk = 1000, np.round(d.rng.beta(1.0, 2.0, 1000), 3)
    y = (d.rng.random(d.n) < risk).astype(int)
    name, scale, said = [
        ("risk_pct", 100, "risk_pct in percent"), ("prob_percent", 100, "prob_percent in percent"),
        ("pop", 100, "pop in percent"), ("score", 1000, "score "), ("pd_bp", 10_000, "pd_bp in"),
        ("Risiko", 100, "Risiko in percent"), ("suspicion", 100, "suspicion in percent"),
    ][d.rng.integers(7)]  # fmt: skip
    if name in ("pop", "suspicion"):
        risk = np.round(risk, 2)
        y = (d.rng.random(d.n) < risk).astype(int)
    cells = np.round(scale * risk, 1)
    cells = cells.astype(int) if (cells % 1 == 0).all() else cells
    noise = 1.0 if name in ("Risiko", "suspicion") else float(d.rng.choice([1.0, 3.0, 1e6]))
    feature = _feature(d, risk, noise)
    held = str(d.rng.choice(["frailty", "humidity", "ef", "similarity"]))
    return Case("beside a fraction", {name: cells, held: feature, "died": y}, risk, y, {},
                holds=(said,))  # fmt: skip


def of_last_year(d: Draw) -> Case:
    """Predictions of this year in percent and of the year before in fractions."""
    d.n, z = 2000, d.rng.normal(-2.5, 1.0, 2000)
    risk = np.round(1 / (1 + np.exp(-z)), 4)
    y = d.rng.random(d.n) < risk
    old = np.round(1 / (1 + np.exp(-0.7 * (z + d.rng.normal(0, 0.5, d.n)) - 1)), 4)
    cells = {"pd_pct": np.round(100 * risk, 2), "prob_default_prev_year": old}
    case = Case("of last year", cells | {"status": np.where(y, "D", "P")}, risk, y * 1, {})
    case.holds = ("pd_pct in percent is the prediction",)
    return case


def mark_of_missing(d: Draw) -> Case:
    """0 and 1, and one mark of a missing outcome that stands in a few rows."""
    d.n, p = 1000, np.round(d.rng.beta(1.0, 1.5, 1000), 1)
    mark = str(d.rng.choice(["M", "m", "missing", "X"]))
    y, lost = (d.rng.random(d.n) < p).astype(int), d.rng.random(d.n) < 0.01
    lost[3] = True
    cells = {"pop12": np.rint(100 * p).astype(int), "rain": np.where(lost, mark, y.astype(str))}
    case = Case("mark of missing", cells, p[~lost], y[~lost], {"probs": "pop12 / 100"})
    case.first |= {"label": "rain = '1'"}
    case.holds = ("1 is the event", "the outcome is not known there", "is a missing value")
    return case


def five_codes(d: Draw) -> Case:
    """Two codes of the event, two without it, and the most frequent one, which is not known."""
    d.n, p = 3000, np.round(d.rng.beta(0.6, 0.8, 3000), 4)
    y, lost = (d.rng.random(d.n) < p).astype(int), d.rng.random(d.n) < 0.35
    often, trained = d.rng.random(d.n) < 0.6, d.rng.random(d.n) < 0.4
    known = np.where(y, np.where(often, "P", "LP"), np.where(often, "B", "LB"))
    p_in = np.where(trained, np.clip(0.1 + 0.8 * y, 0, 1), p)
    cells = {"qual": d.rng.gamma(3, 50, d.n).round(1), "prob_pathogenic": p_in}
    cells |= {"p_value": d.rng.random(d.n).round(4), "clinvar": np.where(lost, "VUS", known)}
    cells |= {"in_training": np.where(trained, "TRUE", "FALSE")}
    kept = ~lost & ~trained
    case = Case("five codes", cells, p[kept], y[kept], {"probs": "prob_pathogenic"})
    case.first |= {"label": "clinvar IN ('P', 'LP')"}
    case.holds = ("LP or P is the event", "the outcome is not known there")
    return case


def one_word_of_class(d: Draw) -> Case:
    """The probability of one class, beside labels in words of which one says pending."""
    d.n, p = 1000, np.round(d.rng.beta(1.0, 3.0, 1000), 4)
    y, lost = (d.rng.random(d.n) < p).astype(int), d.rng.random(d.n) < 0.1
    words = np.where(y, "fraud", "legit")
    cells = {"p_fraud": p, "label": np.where(lost, "pending", words)}
    case = Case("one word of class", cells, p[~lost], y[~lost], {"probs": "p_fraud"})
    case.holds = ("fraud is the event", "the outcome is not known there")
    return case


def horses(d: Draw) -> Case:
    """Places in races of eight, with decimal odds with a margin and the probability to win."""
    races = 200
    d.n, q = 8 * races, d.rng.dirichlet(np.full(8, 1.5), races)
    order = np.argsort(-np.log(q) + np.log(d.rng.exponential(size=q.shape)), axis=1)
    finish = np.argsort(order, axis=1) + 1
    p = np.round(q.ravel(), 4)
    cells = {"race": np.repeat(np.arange(races), 8), "runner": [f"h{k}" for k in range(d.n)]}
    cells |= {"sp_odds": np.round(1 / np.clip(1.15 * p, 0.002, 0.95), 2), "fair_prob": p}
    cells |= {"score": np.argsort(np.argsort(-q, axis=1), axis=1).ravel() + 1}
    case = Case("horses", cells | {"finish": finish.ravel()}, p, (finish.ravel() == 1) * 1, {})
    case.holds = ("fair_prob is the prediction",)
    return case


def score_and_probability(d: Draw) -> Case:
    """Log-odds in wide units and their probabilities, both of names of the contract."""
    d.n, z = 1000, np.round(d.rng.normal(0, 6, 1000), 4)
    p = np.round(1 / (1 + np.exp(-z)), 5)
    y = (d.rng.random(d.n) < p).astype(int)
    cells = {"y_score": z, "y_prob": p, "y_true": y, "y_pred": (p >= 0.5) * 1}
    case = Case("score and probability", cells, p, y, {"probs": "y_score / 100"})
    case.holds = ("y_prob is the prediction", "log-odds is the prediction", "holds logits")
    return case


def suspicions(d: Draw) -> Case:
    """Whole percents under a name that says nothing, of one or three persons."""
    d.n, p = 1000, d.rng.integers(1, 99, 1000) / 100
    y = (d.rng.random(d.n) < p).astype(int)
    names = ["suspicion"] if d.rng.random() < 0.5 else ["alice", "bob", "carol"]
    cells = {"reader": d.rng.choice(["R1", "R2", "R3"], d.n)}
    cells |= {n: np.rint(100 * np.clip(p + d.rng.normal(0, 0.08, d.n), 0.01, 0.98)).astype(int)
              for n in names[::-1]}  # fmt: skip
    cells |= {names[0]: np.rint(100 * p).astype(int), "truth": y}
    case = Case("suspicions", cells, p, y, {})
    case.holds = (f"{names[0]} in percent", "suspicion is a probability in percent")
    return case


def stated_tenths(d: Draw) -> Case:
    """Stated confidences of 5 to 10, beside the likelihood of the text and a score of it."""
    d.n, sure = 2000, d.rng.integers(5, 11, 2000)
    y = d.rng.random(d.n) < sure / 10
    logs = np.round(-d.rng.gamma(4, 2, d.n) + 2.0 * y, 4)
    cells = {"sum_logprob": np.minimum(logs, -0.1), "verbal_conf": sure}
    cells |= {"score": _feature(d, y * 1.0, 1.0), "is_correct": np.where(y, "True", "False")}
    case = Case("stated tenths", cells, sure / 10, y * 1, {})
    case.holds = ("verbal_conf out of 10 is the prediction",)
    return case


def frost(d: Draw) -> Case:
    """The event is an amount below a threshold."""
    d.n, p = 1000, np.round(d.rng.beta(1.0, 1.5, 1000), 3)
    y = (d.rng.random(d.n) < p).astype(int)
    low = 5.0 - d.rng.exponential(3, d.n) - 0.1
    cells = {"frost_prob": p, "tmin": np.where(y, low, 5.0 + d.rng.exponential(4, d.n)).round(1)}
    y = (cells["tmin"] < 5.0).astype(int)
    case = Case("frost", cells, p, y, {})
    case.first = {"probs": "frost_prob"}
    return case


def patients_of_three_ends(d: Draw) -> Case:
    """Alive, dead or lost beside two words that are no outcome."""
    d.n, p = 2000, np.round(d.rng.beta(1.0, 1.5, 2000), 4)
    y, lost = (d.rng.random(d.n) < p).astype(int), d.rng.random(d.n) < 0.1
    cells = {"sex": d.rng.choice(["F", "M"], d.n), "pred": p}
    cells |= {"state": np.where(lost, "unknown", np.where(y, "dead", "alive"))}
    case = Case("patients of three ends", cells, p[~lost], y[~lost], {})
    case.holds = ("dead is the event", "the outcome is not known there")
    return case


KINDS: list[Callable[[Draw], Case]] = [
    plain, complement, percent, words, followed, survival, censored, codes, answers, repeated,
    train, two_sets, predicted, family, cumulative, booleans, flipped, whole_percent, mixed,
    missing, followed_called_label, competing, said_right, train_flag, pipeline, numbered,
    shuffled_names, options_in_json, semicolons, answers_of_numbers, followed_months, boxes,
    free_text, threshold, answer_pairs, clicks, basis_points, terciles, sampled, percent_signs,
    competing_column, causes, status_words, parts, leads, unknown_word,
    lone_confidence, permuted, one_hot, tenths, comma_percents, verdicts, likert, by_alphabet,
    exceedances,
    top_two, two_models, log_probabilities, thousandths, members, named_horizon,
    american_odds, decimal_odds, odds_of_players, raw_scores, rows_of_models, bracketed, initials,
    tenths_in_words, cents, votes, ensemble, named_threshold, code_of_three, named_survival,
    stray_column, verdict_beside_answer, opponents, two_thresholds,
    code_of_no_class, findings, versions, listed_logs, weeks, two_events,
    young_loans, years_beside_months, revised_forecasts, lost_rain,
    beside_a_fraction, of_last_year, mark_of_missing, five_codes, one_word_of_class, horses,
    score_and_probability, suspicions, stated_tenths, frost, patients_of_three_ends,
]  # fmt: skip


def case(number: int) -> Case:
    """Return one of the files; those of a kind stay the same when kinds are added."""
    again, kind = divmod(number, len(KINDS))
    return KINDS[kind](Draw(kind + 75 * again if kind < 75 else kind + 1000 * again))


def alike(data: Any, truth: Case) -> bool:
    """Whether rows that were read are the truth, or the same said of the complement."""
    probs, labels = np.asarray(data.probs), np.asarray(data.labels)
    right = (
        truth.probs if truth.probs.ndim == 2 else np.column_stack([1 - truth.probs, truth.probs])
    )
    if truth.weights is not None and (
        data.weights is None or not np.allclose(data.weights, truth.weights)
    ):
        return False
    if truth.followup is not None:
        return _followed_alike(data, truth, right)
    if getattr(data, "followup", None) is not None:
        return False
    if truth.subsets and (data.clusters is not None or data.by is not None):
        return True
    if probs.shape != right.shape:
        return bool(truth.subsets and len(probs) == len(right) and probs.shape[1] == 2)
    if truth.subsets:  # rows of one of the runs, in an order of the file
        return bool(len(probs) == len(right) and abs(labels.mean() - truth.labels.mean()) < 1e-9)
    orders = [np.arange(right.shape[1])]
    if right.shape[1] == 2:
        orders.append(np.array([1, 0]))  # the complement of both
    elif data.classes is not None or right.shape[1] > 2:
        orders = [np.lexsort(np.abs(probs[:1, :, None] - right[:1, None, :]).min(axis=0))]
        orders = [_matching(probs, right)]
    return any(
        order is not None
        and np.allclose(probs, right[:, order], atol=2e-3)
        and bool((order[labels] == truth.labels).all())
        for order in orders
    )


def _matching(probs: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """Return which column of the truth each column is, None if they are no permutation."""
    gaps = np.abs(probs[:, :, None] - right[:, None, :]).max(axis=0)
    order = gaps.argmin(axis=1)
    return order if len({*order.tolist()}) == right.shape[1] else None


def _followed_alike(data: Any, truth: Case, right: np.ndarray) -> bool:
    followup = getattr(data, "followup", None)
    if followup is None or truth.followup is None or len(data.probs) != len(right):
        return False
    time, seen, horizon = truth.followup
    event, other = ((seen == code) & (time <= horizon) for code in (1, 2))
    known = event | other | (time >= horizon)
    status = np.asarray(followup.status)
    same = bool(((status == 1) == event).all() and ((status == 2) == other).all())
    same &= bool((status[known & ~event & ~other] == 0).all())
    return same and np.allclose(data.probs[:, 1], right[:, 1], atol=2e-3)
