"""Twelve published e-processes of precipitation forecasts (needs --data).

Three statistical methods forecast whether it will rain tomorrow at four airports. The replication
material of Choe & Ramdas has, for every day, the evidence of Henzi & Ziegel that one of two is the
better forecaster by the Brier score. `ComparisonMonitor` has all twelve, on every day, to ten
digits. Days with a missing forecast leave the evidence as it was.

The confidence sequences say how much better. Evidence of 15 445 for the isotonic method at
Frankfurt goes with a difference of Brier scores of a few thousandths, whose enclosure is wider: two
questions, whether somebody is ever better, and by how much on average.
"""

from __future__ import annotations

import csv

import numpy as np

import caltest as ct
from paper_replications.model import Context, Result, Table

PAPER = "Choe & Ramdas 2024, Henzi & Ziegel 2022"
WHERE = "evalues_lag1.csv of the replication material"
COLUMN = {"HCLR": "pop_hclr", "HCLR['-']": "pop_hclr_noscale", "IDR": "pop_idr"}
#: Rows whose history is kept in full.
AT_ONCE = 512


def run(context: Context) -> Result:
    """Compare every process at every row."""
    result, rows = Result(), []
    path = context.data / "sequential" / "precip_evalues_lag1.csv" if context.data else None
    if path is None or not path.is_file():
        return result
    days: dict[tuple[str, str], list[dict[str, str]]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            days.setdefault((row["airport"], row["hypo"]), []).append(row)
    for (airport, pair), own in days.items():
        better, worse = (COLUMN[name] for name in pair.split("/"))
        numbers = [[_number(row[c]) for c in (better, worse, "y", "eval")] for row in own]
        p, q, y, published = np.array(numbers).T
        known = np.flatnonzero(np.isfinite(p) & np.isfinite(q) & np.isfinite(y))
        whole, logs = ct.ComparisonMonitor(), np.zeros(len(own) + 1)
        for first in range(0, known.size, AT_ONCE):
            these = known[first : first + AT_ONCE]
            part = ct.ComparisonMonitor().update(p[these], q[these], y[these])
            logs[these + 1] = part.history[:, 1] + np.log(whole.evidence[0])
            whole = whole.update(p[these], q[these], y[these])
        seen = np.append(
            0, np.where(np.isin(np.arange(len(own)), known), np.arange(len(own)) + 1, 0)
        )
        ours = np.exp(logs[np.maximum.accumulate(seen)][1:])
        entry = f"{airport}, {pair}"
        worst = float(np.max(np.abs(ours / published - 1.0)))
        result.holds(f"{entry}: all {len(own)} days to ten digits", worst < 1e-10, f"{worst:.1e}")
        result.near(f"{entry}: last", ours[-1], published[-1], 1e-10 * published[-1], digits=10)
        rows.append([entry, f"{ours[-1]:.4g}", f"[{whole.low:.4f}, {whole.high:.4f}]"])
    caption = "Evidence that the first is better, and the mean difference of the scores, α = .05."
    result.tables.append(Table(caption, ["airport, pair", "evidence", "first − second"], rows))
    return result


def _number(cell: str) -> float:
    return float("nan") if cell in ("", "NA") else float(cell)
