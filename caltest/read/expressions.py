"""Expressions over the columns of a table: names, patterns of names, and SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from caltest.errors import InvalidPredictionsError

if TYPE_CHECKING:
    import polars as pl

#: Names of columns that a message lists, at most.
LISTED = 30


#: Comparisons in the order of values, as polars names them in a plan.
ORDERED = {"Lt", "LtEq", "Gt", "GtEq"}


@dataclass(frozen=True)
class Term:
    """One expression over the columns: as SQL, as polars, and the column if it is one alone."""

    sql: str
    expr: pl.Expr
    column: str | None = None

    @property
    def name(self) -> str:
        """The column's name, or the expression, for messages."""
        return self.sql if self.column is None else self.column

    @property
    def roots(self) -> list[str]:
        """Columns that the expression uses."""
        return [self.column] if self.column is not None else self.expr.meta.root_names()


def terms(wanted: str | Sequence[str], schema: Mapping[str, Any]) -> list[Term]:
    """Return the columns, or expressions over columns, that an option asks for.

    A part that is a column's name, also in double quotes, is that column; one with ``*`` or ``?``
    and without blanks is a pattern of names; all others are SQL. ``schema`` maps the names of
    columns to their types.

    Raises
    ------
    InvalidPredictionsError
        For an expression that has no column, is no value a row, or compares text with numbers.
    """
    import polars as pl

    if isinstance(wanted, str):
        parts = [wanted] if wanted in schema else split(wanted)
    else:
        parts = [str(part) for part in wanted]
    found: list[Term] = []
    for part in parts:
        inner = part[1:-1].replace('""', '"') if re.fullmatch(r'".+"', part, re.DOTALL) else part
        name = part if part in schema else inner if inner in schema else None
        if name is not None:
            found.append(Term(quoted(name), pl.col(name), name))
        elif re.search(r"[*?[]", part) and not re.search(r"[\s()]", part):
            members = in_order([n for n in schema if fnmatchcase(n, part)])
            if not members:
                raise InvalidPredictionsError(f"no column is like {part!r}: {listing(schema)}")
            found += [Term(quoted(n), pl.col(n), n) for n in members]
        else:
            found.append(_expression(part, schema))
    return found


def split(text: str) -> list[str]:
    """Return the parts of text between commas outside of brackets and quotes, stripped."""
    parts, depth, quote, start = [], 0, "", 0
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _expression(text: str, schema: Mapping[str, Any]) -> Term:
    import polars as pl

    try:
        expr = pl.sql_expr(text)
        roots = expr.meta.root_names()
        plan = json.loads(expr.meta.serialize(format="json"))
    except Exception as error:
        if re.fullmatch(r"[^\s'\"()=<>]+", text):  # a name, not an expression
            raise _no_column(text, schema) from None
        reason = str(error).partition("\n")[0]
        raise InvalidPredictionsError(
            f"{text!r} is neither a column nor an expression ({reason}): {listing(schema)}"
        ) from None
    lacking = [name for name in roots if name not in schema]
    if lacking:
        raise _no_column(text if "-" in text and " " not in text else lacking[0], schema)
    nodes = [*_nodes(plan)]
    if not roots or any(kind in ("Agg", "Over", "Alias") for kind, _ in nodes):
        reason = "it uses no column" if not roots else "it is a sum or the like over rows"
        raise InvalidPredictionsError(f"{text!r} is not a value of each row: {reason}")
    for kind, node in nodes:
        if kind == "BinaryExpr" and node["op"] in ORDERED:
            _refuse_text(text, (node["left"], node["right"]), schema)
    return Term(text, expr)


def _nodes(plan: object) -> Iterator[tuple[str, Any]]:
    """Yield (kind, content) of all nodes of a plan of polars."""
    if isinstance(plan, dict):
        for kind, content in plan.items():
            yield kind, content
            if kind != "Literal":
                yield from _nodes(content)
    elif isinstance(plan, list):
        for content in plan:
            yield from _nodes(content)


def _refuse_text(text: str, sides: tuple[Any, Any], schema: Mapping[str, Any]) -> None:
    """Refuse text compared with a number as text, by which "7" is above "10"."""
    import polars as pl

    for column, literal in (sides, sides[::-1]):
        if not (isinstance(column, dict) and isinstance(literal, dict)):
            continue
        name, value = column.get("Column"), literal.get("Literal")
        scalar = value.get("Scalar") if isinstance(value, dict) else None
        word = scalar.get("String") if isinstance(scalar, dict) else None
        if isinstance(word, str) and schema.get(str(name)) == pl.String and is_number(word):
            raise InvalidPredictionsError(
                f"{text!r} compares the text in column {name} with {word!r} letter by letter, by "
                f"which 10 is below 7: compare numbers, CAST({quoted(str(name))} AS DOUBLE)"
            )


def is_number(word: str) -> bool:
    """Return whether a word is written as a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def _no_column(name: str, schema: Mapping[str, Any]) -> InvalidPredictionsError:
    by_key = {key(column): column for column in schema}
    near = [by_key[key(name)]] if key(name) in by_key else []
    near = near or [by_key[k] for k in get_close_matches(key(name), by_key, 1, 0.7)]
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    return InvalidPredictionsError(f"there is no column {name!r}{guess}: {listing(schema)}")


def listing(names: Mapping[str, Any] | Sequence[str]) -> str:
    """Return a clause that lists the columns of a table."""
    shown = [*names][:LISTED]
    return f"the columns are {', '.join(shown)}{', …' if len(names) > len(shown) else ''}"


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """Return a column's name as SQL: in double quotes where it is a word of SQL or no word."""
    import polars as pl

    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        try:
            if pl.sql_expr(f"{name} = 1 AND NOT {name} = 2").meta.root_names() == [name, name]:
                return name
        except pl.exceptions.PolarsError:
            pass
    return '"' + name.replace('"', '""') + '"'


def key(name: str) -> str:
    """Return a name in lower case with ``_`` for signs: "True label?" is "true_label"."""
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


def ends_of(columns: Sequence[str]) -> list[str]:
    """Return what tells the names of a family apart: ``p_cat, p_dog`` are cat and dog."""
    from os.path import commonprefix

    matches = [FAMILY.fullmatch(name) for name in columns]
    if all(matches):
        return [next(filter(None, match.groups())) for match in matches if match]
    head = len(commonprefix(list(columns))) if len(columns) > 1 else 0  # noqa: RUF071 (no paths)
    numbers = all(name[head:].isdecimal() for name in columns)
    while head and (
        columns[0][head - 1].isdecimal() if numbers else columns[0][head - 1].isalnum()
    ):
        head -= 1  # a name ends between words, or before its whole number
    return [name[head:] or name for name in columns]


#: Names of one column a class: ``p_A``, ``prob_A``, ``proba_A``, ``p0``, ``0``.
FAMILY = re.compile(r"(?:p|prob|proba)(?:_(.+)|(\d+))|(\d+)", re.IGNORECASE)


def in_order(columns: Sequence[str]) -> list[str]:
    """Return columns sorted by the numbers at their ends, if all ends are numbers."""
    ends = dict(zip(columns, ends_of(columns), strict=True))
    if ends and all(end.isdecimal() for end in ends.values()):
        return sorted(columns, key=lambda name: int(ends[name]))
    return list(columns)
