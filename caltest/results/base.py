"""What all answers share: they are frozen, and go to JSON and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

#: p-values below this are printed as a bound.
SMALLEST_SHOWN = 1e-12


def format_p(p: float) -> str:
    """Return a p-value as it is printed: never 0, three digits at most."""
    if p < SMALLEST_SHOWN:
        return f"< {SMALLEST_SHOWN:.0e}"
    return f"{p:.3f}" if p >= 0.01 else f"{p:.4f}" if p >= 0.001 else f"{p:.1e}"


def format_value(value: float) -> str:
    """Return the value of a statistic with four decimals, or three digits when it is tiny."""
    return f"{value:.4f}" if value == 0.0 or abs(value) >= 0.001 else f"{value:.2e}"


@dataclass(frozen=True)
class Result:
    """What all answers share: a dictionary form and its inverse.

    The null distribution is not part of the dictionary; ``np.asarray(result.null_distribution)``
    gives simulated replicates to whoever wants to keep them.
    """

    #: The classes of results by name, so that results within results can be rebuilt.
    kinds: ClassVar[dict[str, type[Result]]] = {}

    def __init_subclass__(cls) -> None:
        Result.kinds[cls.__name__] = cls

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers, strings, lists and dictionaries."""
        content = {
            f.name: _plain(getattr(self, f.name))
            for f in fields(self)
            if "transient" not in f.metadata
        }
        return {"kind": type(self).__name__, **content}

    def to_json(self, indent: int | None = 2) -> str:
        """Return the result as JSON."""
        return json.dumps(self.as_dict(), indent=indent, ensure_ascii=False)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Rebuild a result from :meth:`as_dict`, without its null distribution."""
        values = dict(content)
        kind = values.pop("kind", cls.__name__)
        if kind != cls.__name__:
            raise ValueError(f"this is the dictionary of a {kind}, not of a {cls.__name__}")
        return cls(**{name: _frozen(value) for name, value in values.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a result from :meth:`to_json`."""
        return cls.from_dict(json.loads(text))


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.as_dict()
    if hasattr(value, "tolist"):  # an array
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return None if value != value else value  # JSON has no NaN


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, dict) and "kind" in value:
        return Result.kinds[value["kind"]].from_dict(value)
    return value
