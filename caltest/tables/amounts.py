"""Events of amounts and of one class: a label that is a comparison, such as ``rain_mm>=0.2``."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from caltest.errors import InvalidPredictionsError
from caltest.tables import cells
from caltest.tables.columns import no_column
from caltest.tables.source import Column, Source, is_number

_COMPARES = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_COMPARISON = re.compile(rf"\s*(.*?[^\s<>=])\s*({'|'.join(_COMPARES)})\s*(\S+)\s*")


def with_event(source: Source, label: object) -> Source:
    """Return a source that has a comparison in place of its amount, 1 where it holds.

    Where the amount is missing the event is, too. What is no comparison changes nothing.
    """
    parts = _COMPARISON.fullmatch(label) if isinstance(label, str) else None
    if parts is None or label in source.names:
        return source
    amount, sign, bound = parts.groups()
    if amount not in source.names:
        raise no_column(amount, source.names)
    limit = float(bound) if is_number(bound) else None
    if limit is None and sign != "==":
        raise InvalidPredictionsError(
            f"label {label!r}: {bound!r} is not a number; an event of an amount is written as "
            f"{amount}>=0.5"
        )

    def read(names: Sequence[str]) -> list[Column]:
        columns = source.read([amount if name == label else name for name in names])
        for place in (i for i, name in enumerate(names) if name == label):
            if limit is None:
                missing = cells.missing(columns[place])
                holds = np.char.strip(columns[place].astype(str)) == bound
            else:
                numbers = cells.with_gaps(columns[place], amount)
                missing, holds = np.isnan(numbers), _COMPARES[sign](numbers, limit)
            columns[place] = np.where(missing, np.nan, holds)
        return columns

    others = [name for name in source.names if name != amount]
    return replace(source, names=[*others, str(label)], read=read)
