"""Metrics inside other tools: what cannot be measured is NaN with a warning, never an exception.

:func:`or_nan` wraps a metric for torchmetrics, scikit-learn, MLflow, Inspect and lm-eval, which
must not end because a batch cannot be measured.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import TypeVar

from caltest.errors import UnmeasuredWarning

T = TypeVar("T")


def or_nan(
    ask: Callable[[], T], unmeasured: T, name: str, said: set[str] | None = None, stack: int = 3
) -> T:
    """Return the answer of ``ask()``, or ``unmeasured`` with an ``UnmeasuredWarning`` if it fails.

    ``name`` is the name of the metric in the warning. If the set ``said`` is passed, reasons that
    differ only in numbers are warned of once. ``stack`` is the stack level of the warning.
    ``KeyboardInterrupt`` and ``SystemExit`` are passed on.
    """
    try:
        return ask()
    except Exception as error:  # whatever it is, the host goes on
        message = f"{name} is nan: {type(error).__name__}: {error}"
        reason = re.sub(r"\d+", "#", message)
        if said is None or reason not in said:
            warnings.warn(message, UnmeasuredWarning, stacklevel=stack)
        if said is not None:
            said.add(reason)
        return unmeasured
