"""The items, in the order of the documents."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from paper_replications.model import Check, Context, Result

MODULES = {
    "V-T1": "vaicenavicius.table1",
    "V-F1": "vaicenavicius.figure1",
    "V-F3": "vaicenavicius.figure3",
    "V-MNIST": "vaicenavicius.mnist",
    "V-F4": "vaicenavicius.figure4",
    "V-F6": "vaicenavicius.figure6",
    "V-A1": "vaicenavicius.appendix_a1",
    "V-A2": "vaicenavicius.appendix_a2",
    "V-4.3": "vaicenavicius.section43",
    "V-B": "vaicenavicius.appendix_b",
    "V-D": "vaicenavicius.appendix_d",
    "N-F1": "nixon.label_noise",
    "N-F2": "nixon.adaptive_ranges",
    "N-3.4": "nixon.section34",
    "N-T1": "nixon.tables",
    "C-8": "calzone_docs.values",
    "C-CURVE": "calzone_docs.curve",
    "B-WEATHER": "guo_blog.weather",
    "B-RECAL": "guo_blog.recalibration",
    "B-FACTORS": "guo_blog.factors",
    "T": "ece_tutorial.examples",
    "O-OVARIAN": "van_calster.ovarian",
    "D-CURVES": "decision_curves.cancer_biopsies",
    "S-FOLLOWUP": "follow_up_reviews.five_year_risks",
    "X-CIFAR": "widmann.cifar",
    "X-PRECIP": "sequential_forecasts.precipitation",
}


#: Items that take minutes and are run only by their full name.
ON_REQUEST = {"V-MNIST"}


def chosen(names: Sequence[str]) -> list[str]:
    """Return the items that begin with one of the names, or all of them when there are none."""
    wanted = [name.upper() for name in names]
    return [
        item
        for item in MODULES
        if item in wanted
        or (item not in ON_REQUEST and (not wanted or any(item.startswith(w) for w in wanted)))
    ]


@dataclass(frozen=True)
class Outcome:
    """An item that was run: where it comes from, what it found, and how long it took."""

    name: str
    paper: str
    where: str
    title: str
    description: str
    reconstruction: str
    result: Result
    seconds: float

    @property
    def verdict(self) -> str:
        """PASS when all checks passed, SKIP when there were none."""
        checks = self.result.checks
        return "SKIP" if not checks else "PASS" if all(c.passed for c in checks) else "FAIL"


def run(name: str, context: Context) -> Outcome:
    """Run one item; an exception in it is a check that failed."""
    module = import_module(f"paper_replications.{MODULES[name]}")
    started = time.perf_counter()
    try:
        with context.style():
            result: Result = module.run(context)
    except Exception as error:  # one item must not end the report
        traceback.print_exc()
        result = Result(checks=[Check("the item runs", "", repr(error), "no exception", False)])
    seconds = time.perf_counter() - started
    title, _, description = (module.__doc__ or "").partition("\n\n")
    return Outcome(
        name,
        module.PAPER,
        module.WHERE,
        title.strip().rstrip("."),
        description.strip(),
        _reconstruction(module),
        result,
        seconds,
    )


def _reconstruction(module: ModuleType) -> str:
    text: str = getattr(module, "RECONSTRUCTION", "")
    return text
