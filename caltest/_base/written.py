"""Values print as they were written, so that a result carries a recipe that can be quoted."""

from __future__ import annotations

from dataclasses import fields
from inspect import Signature, signature
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar, Self

import numpy as np

from caltest._base.foreign import refuse_misfit

#: What is written by its name; partial functions and callable values have none of their own.
NAMED = (type, FunctionType, BuiltinFunctionType, np.ufunc)


def name_of(value: Any) -> str:
    """Return a value as it is written in a recipe: 0.5 of a NumPy number, a function's name."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(name_of, value))}]"
    plain = value.item() if isinstance(value, np.generic) else value
    return plain.__name__ if isinstance(plain, NAMED) else repr(plain)


def several(n: int, word: str) -> str:
    """Return a number of things: "1 row", "2 rows", "3 classes"."""
    return f"{n} {word}{'' if n == 1 else 'es' if word.endswith('s') else 's'}"


class _OfInit:
    """The signature of a class that is made by ``__init__``, whatever ``__new__`` takes."""

    def __get__(self, value: Any, made: Any) -> Signature:
        _, *parameters = signature(made.__init__).parameters.values()
        return Signature(parameters)


class Written:
    """Prints a dataclass as it would be written: options only where they are not the default."""

    #: How many fields are always printed, the first of them by its place; other fields are options.
    essential: ClassVar[int] = 1
    __signature__ = _OfInit()

    def __new__(cls, *values: Any, **options: Any) -> Self:
        if values or options:  # a pickle comes without
            refuse_misfit(cls.__name__, signature(cls), values, options)
        return super().__new__(cls)

    def __repr__(self) -> str:
        shown = []
        for j, field in enumerate(fields(self)):  # type: ignore[arg-type]
            value = vars(self)[field.name]
            if j < self.essential or value != field.default:
                place = "" if j == 0 and self.essential else f"{field.name}="
                shown.append(place + name_of(value))
        return f"{type(self).__name__}({', '.join(shown)})"
