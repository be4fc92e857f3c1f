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
    "V-T1": "v_table1",
    "V-F1": "v_figure1",
    "V-F3": "v_figure3",
    "V-MNIST": "v_mnist",
    "V-F4": "v_figure4",
    "V-F6": "v_figure6",
    "V-A1": "v_a1",
    "V-A2": "v_a2",
    "V-4.3": "v_43",
    "V-B": "v_b",
    "V-D": "v_d",
    "N-F1": "n_figure1",
    "N-F2": "n_figure2",
    "N-3.4": "n_34",
    "N-T1": "n_tables",
    "C-8": "c_values",
    "C-CURVE": "c_curve",
    "B-WEATHER": "b_weather",
    "B-RECAL": "b_recalibration",
    "B-FACTORS": "b_factors",
    "T": "t_examples",
    "O-OVARIAN": "o_ovarian",
    "S-FOLLOWUP": "s_followup",
    "X-CIFAR": "x_cifar",
    "X-PRECIP": "x_precip",
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
