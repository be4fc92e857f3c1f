"""Expressions over the columns of a table: names, patterns of names, and SQL.

:func:`terms_of` turns the value of an option into a list of :class:`Term`: a column name, a pattern
such as ``p_*``, a JSON path, or any expression that ``polars.sql_expr`` takes. :func:`words_of`
and :func:`literal` give cells as words, and as SQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.errors import InvalidPredictionsError

if TYPE_CHECKING:
    import polars as pl

#: Names of columns that a message lists, at most.
COLUMNS_LISTED = 30


#: Limits such as "<1" in a column, of which each is taken as a value, at most.
MOST_LIMITS = 3


#: Comparisons in the order of values, as polars names them in a plan.
INEQUALITIES = {"Lt", "LtEq", "Gt", "GtEq"}


@dataclass(frozen=True)
class Term:
    """Expression over the columns of a table, as SQL and as a polars expression.

    ``sql`` and ``expr`` are the two forms. ``column`` is the name if it is a single column, else
    None; ``written`` are the names of text columns that the expression reads as numbers.
    """

    sql: str
    expr: pl.Expr
    column: str | None = None
    #: Columns of text that stand where numbers are needed.
    written: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of this expression in messages: the column's name, or the SQL of an expression."""
        return self.sql if self.column is None else self.column

    @property
    def roots(self) -> list[str]:
        """Names of the columns that this expression uses, each once."""
        return [self.column] if self.column is not None else self.expr.meta.root_names()


def terms_of(wanted: str | Sequence[str], schema: Mapping[str, Any]) -> list[Term]:
    """Return the columns, or expressions over columns, that an option asks for, in order.

    Each is a :class:`Term`, with its SQL and its polars expression. ``wanted`` is the option's
    value: one text, whose parts are separated by commas, or a list. A part that is a column's name,
    also in double quotes, is that column; one with ``*`` or ``?`` and without blanks is a pattern
    of names; all others are SQL. ``schema`` maps the names of columns to their types.

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
    """Return the parts of a text between commas that are outside brackets and quotes, stripped."""
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
    """Return an SQL expression as a :class:`Term`, which has its polars form as well.

    ``text`` is the SQL, and ``schema`` maps the names of the table's columns to their types.
    InvalidPredictionsError if it is no expression, names a column that is missing, or is no value
    of each row.
    """
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
        if kind == "BinaryExpr" and node["op"] in INEQUALITIES:
            _refuse_text(text, (node["left"], node["right"]), schema)
    return _of_written_numbers(text, expr, plan, schema)


def bound(listed: Sequence[Term], schema: Mapping[str, Any]) -> list[Term]:
    """Return expressions parsed anew for a table whose columns have other types.

    ``listed`` are the expressions, each a :class:`Term` with its SQL; plain columns stay as they
    are. ``schema`` maps the table's columns to their types.
    """
    return [t if t.column is not None else _expression(t.sql, schema) for t in listed]


# ------------------------------------------------------------------------------
# Text that stands where numbers are needed.


#: Operators of numbers, and functions of them, as polars names them in a plan.
ARITHMETIC = {"Plus", "Minus", "Multiply", "Divide", "TrueDivide", "FloorDivide", "Modulus"}
ARITHMETIC |= {"Div", "Mul", "Add", "Sub", "Mod"}
COMPARISONS = INEQUALITIES | {"Eq", "NotEq"}
FUNCTIONS = {"Exp", "Abs", "Log", "Log1p", "Sqrt", "Cbrt", "Pow", "Round", "Floor", "Ceil", "Sign"}


def written_number(words: pl.Expr) -> pl.Expr:
    """Return the polars expression of numbers written as text; "5%" is 0.05, other text is null.

    ``words`` is the polars expression of the text.
    """
    import polars as pl

    words = words.str.strip_chars()
    number = words.str.strip_chars_end("% ").cast(pl.Float64, strict=False)
    return pl.when(words.str.ends_with("%")).then(number / 100.0).otherwise(number)


def _of_written_numbers(
    text: str, expr: pl.Expr, plan: dict[str, Any], schema: Mapping[str, Any]
) -> Term:
    """Return a :class:`Term` that converts columns of text wherever numbers are needed.

    ``text`` is the expression as SQL, ``expr`` as polars has it, and ``plan`` as nested
    dictionaries and lists, which are changed. ``schema`` maps columns to their types. The term has
    the changed expression and the names of the converted columns.
    """
    import polars as pl

    used = {n for n in expr.meta.root_names() if schema[n] == pl.String}
    places = [place for place in _operands(plan, schema) if place[0][place[1]]["Column"] in used]
    if not places:
        return Term(text, expr)
    written = {holder[at]["Column"] for holder, at in places}
    places += [
        (node, side)
        for kind, node in _nodes(plan)
        if kind == "Ternary"
        for side in ("truthy", "falsy")
        if "Column" in node[side] and node[side]["Column"] in written
    ]
    for holder, at in places:
        number = written_number(pl.col(holder[at]["Column"]))
        holder[at] = json.loads(number.meta.serialize(format="json"))
    changed = pl.Expr.deserialize(StringIO(json.dumps(plan)), format="json")
    return Term(text, changed, None, tuple(sorted(written)))


def _operands(plan: object, schema: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return (holder, key) of every column in an expression that stands where a number is needed.

    These are operands of arithmetic, of numeric functions, and of comparisons with numbers.
    ``plan`` is the expression as polars parses it, in nested dictionaries and lists;
    ``holder[key]`` is the column's node in it; ``schema`` maps columns to their types.
    """
    found: list[tuple[Any, Any]] = []
    for kind, node in _nodes(plan):
        if (operation := _operation(kind, node)) is None:
            continue
        name, sides = operation
        for holder, at in sides:
            others = [h[a] for h, a in sides if (h, a) != (holder, at)]
            if name in COMPARISONS:
                numeric = any(_is_numeric(other, schema) for other in others)
            else:
                numeric = not any(_is_word(other) for other in others)
            if numeric and isinstance(holder[at], dict) and "Column" in holder[at]:
                found.append((holder, at))
    return found


def _operation(kind: str, node: Any) -> tuple[str, list[tuple[Any, Any]]] | None:
    """Return (name, operands) of an arithmetic or comparison node; None for other nodes.

    A node is a part of an expression parsed by polars, in nested dictionaries and lists: ``kind``
    is its key, such as "BinaryExpr", and ``node`` its content. The name is the name polars gives
    the operation, such as "Plus". Each operand is (holder, key): the operand's own node is
    ``holder[key]``.
    """
    if kind == "BinaryExpr" and node["op"] in ARITHMETIC | COMPARISONS:
        return node["op"], [(node, "left"), (node, "right")]
    if kind != "Function":
        return None
    function = node["function"]
    while isinstance(function, dict) and len(function) == 1:
        inner = next(iter(function))
        function = function[inner] if inner in ("Sql", "Binary", "Pow") else inner
    name = str(function)
    if name not in ARITHMETIC | COMPARISONS | FUNCTIONS | {"Generic"}:
        return None
    return name, [(node["input"], k) for k in range(len(node["input"]))]


def _is_numeric(node: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a node of a parsed expression has numbers as values.

    ``node`` is a part of an expression parsed by polars, such as ``{"Column": "p"}``. ``schema``
    maps columns to their types. False for text, booleans, dates, comparisons and unknown nodes.
    """
    if not isinstance(node, dict):
        return False
    if "Column" in node:
        return bool(schema[node["Column"]].is_numeric())
    if "Literal" in node:
        value = node["Literal"]
        kinds = value.get("Scalar", value) if isinstance(value, dict) else {}
        words = ("String", "Boolean", "Null", "Series", "Date", "Datetime", "Duration", "Time")
        return isinstance(kinds, dict) and not {*kinds} & {*words}
    if "Cast" in node:
        return bool(re.search(r"Float|Int|Decimal", json.dumps(node["Cast"].get("dtype"))))
    operation = next((_operation(kind, inner) for kind, inner in node.items()), None)
    return operation is not None and operation[0] not in COMPARISONS


def _is_word(node: Any) -> bool:
    value = node.get("Literal") if isinstance(node, dict) else None
    scalar = value.get("Scalar") if isinstance(value, dict) else None
    return isinstance(scalar, dict) and "String" in scalar


def says_percent(name: str) -> bool:
    """Return whether the name of a column says that it holds percentages."""
    return "%" in name or bool({"percent", "pct", "percentage"} & {*key(name).split("_")})


def compared(term: Term) -> list[tuple[str, str]]:
    """Return (column, operator) for each column that an expression compares with a constant.

    ``term`` is the expression, as SQL and as polars has it. The operator is the name polars gives
    it, such as "Eq" or "GtEq"; membership of a list counts as "Eq".
    """
    plan = json.loads(term.expr.meta.serialize(format="json"))
    found = []
    for kind, node in _nodes(plan):
        if kind == "Function" and "IsIn" in json.dumps(node["function"]):
            operation: Any = ("Eq", [(node["input"], k) for k in range(len(node["input"]))])
        else:
            operation = _operation(kind, node)
        if operation is None or operation[0] not in COMPARISONS:
            continue
        nodes = [holder[at] for holder, at in operation[1]]
        literals = any(isinstance(n, dict) and "Literal" in n for n in nodes)
        names = [n["Column"] for n in nodes if isinstance(n, dict) and "Column" in n]
        found += [(name, operation[0]) for name in names if literals]
    return found


def conjuncts(expr: pl.Expr) -> list[pl.Expr]:
    """Return the parts of a condition that AND joins, a list of polars expressions.

    ``expr`` is the condition as a polars expression. It is the only part if no AND is its outermost
    operation.
    """
    import polars as pl

    plan = json.loads(expr.meta.serialize(format="json"))
    found, left = list[Any](), [plan]
    while left:
        node = left.pop()
        inner = node.get("BinaryExpr") if isinstance(node, dict) else None
        if inner is not None and inner["op"] in ("And", "LogicalAnd"):
            left += [inner["right"], inner["left"]]
        else:
            found.append(node)
    if len(found) == 1:
        return [expr]
    return [pl.Expr.deserialize(StringIO(json.dumps(node)), format="json") for node in found]


def compared_columns(term: Term) -> list[tuple[str, str]]:
    """Return the pairs of columns that an expression tests for equality.

    ``term`` is the expression, as SQL and as polars has it: ``a = b`` gives [("a", "b")]. The list
    is empty if it compares no two columns.
    """
    plan = json.loads(term.expr.meta.serialize(format="json"))
    operations = (_operation(kind, node) for kind, node in _nodes(plan))
    sides = [[h[at] for h, at in found[1]] for found in operations if found and found[0] == "Eq"]
    names = [[n["Column"] for n in two if isinstance(n, dict) and "Column" in n] for two in sides]
    return [(two[0], two[1]) for two in names if len(two) == 2]


def with_column(sql: str, name: str, replacement: str) -> str:
    """Return the expression ``sql`` with ``replacement`` in the place of the column ``name``."""
    names = {name, quoted(name), '"' + name.replace('"', '""') + '"'}
    tokens = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[A-Za-z_]\w*")
    return tokens.sub(lambda found: replacement if found[0] in names else found[0], sql)


def _nodes(plan: object) -> Iterator[tuple[str, Any]]:
    """Yield (kind, content) of all nodes of a parsed expression, from the outside in.

    ``plan`` is the expression as polars writes it in JSON, nested dictionaries and lists:
    ``{"Column": "p"}`` is the node ("Column", "p"). Literals are not entered.
    """
    if isinstance(plan, dict):
        for kind, content in plan.items():
            yield kind, content
            if kind != "Literal":
                yield from _nodes(content)
    elif isinstance(plan, list):
        for content in plan:
            yield from _nodes(content)


def _refuse_text(text: str, sides: tuple[Any, Any], schema: Mapping[str, Any]) -> None:
    """Raise InvalidPredictionsError for a comparison of text with a number, such as "7" > "10".

    ``text`` is the expression as SQL, ``sides`` are the two compared parts of it as polars parses
    them, such as ``{"Column": "p"}``, and ``schema`` maps columns to their types.
    """
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
    """Return whether a word is written as a number, such as "-1.5e3"; so are "nan" and "inf"."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def _no_column(name: str, schema: Mapping[str, Any]) -> InvalidPredictionsError:
    """Return the error, to be raised, for a column that is missing, with the most similar name.

    ``name`` is that column, and ``schema`` has the names of those that exist.
    """
    by_key = {key(column): column for column in schema}
    near = [by_key[key(name)]] if key(name) in by_key else []
    near = near or [by_key[k] for k in get_close_matches(key(name), by_key, 1, 0.7)]
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    return InvalidPredictionsError(f"there is no column {name!r}{guess}: {listing(schema)}")


def listing(names: Mapping[str, Any] | Sequence[str]) -> str:
    """Return a clause that lists the columns of a table: "the columns are p, y".

    ``names`` are their names; long lists end in "…".
    """
    shown = [cut(name) for name in [*names][:COLUMNS_LISTED]]
    return f"the columns are {', '.join(shown)}{', …' if len(names) > len(shown) else ''}"


def cut(name: str) -> str:
    """Return a name as messages show it: at most 60 letters."""
    return name if len(name) <= 60 else f"{name[:59]}…"


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """Return a column name as SQL, in double quotes where SQL would not read it as a name."""
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
    """Return the distinctive parts of the names of a family: cat and dog for ``p_cat, p_dog``.

    ``columns`` are the names; the parts are in the same order. A name without one is returned
    whole.
    """
    from os.path import commonprefix

    inside = [IN_BRACKETS.fullmatch(name) for name in columns]
    if len(columns) > 1 and all(inside):
        return [match[1] for match in inside if match]
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


def ends_in(name: str, end: str) -> bool:
    """Return whether a column name is ``end`` or ends in it as a word of its own: votes_A, n2."""
    if not name.endswith(end):
        return False
    before = name[: len(name) - len(end)][-1:]
    return not (before.isdecimal() if end.isdecimal() else before.isalnum())


#: Names of one column a class: ``p_A``, ``prob_A``, ``proba_A``, ``p0``, ``0``.
FAMILY = re.compile(r"(?:p|prob|proba)(?:_(.+)|(\d+))|(\d+)", re.IGNORECASE)


#: Names of one column a class such as ``P(agree)``, and of conditions such as ``Pr(Y = 2)``.
IN_BRACKETS = re.compile(r"(?:p|pr|prob)\(\s*(?:\w+\s*=\s*)?([^()]+?)\s*\)", re.IGNORECASE)


def in_order(columns: Sequence[str]) -> list[str]:
    """Return columns sorted by the numbers at their ends; as given if an end is no number."""
    ends = dict(zip(columns, ends_of(columns), strict=True))
    if ends and all(end.isdecimal() for end in ends.values()):
        return sorted(columns, key=lambda name: int(ends[name]))
    return list(columns)


# ------------------------------------------------------------------------------
# Cells of columns: their kind, as words, and written in SQL.


def kind_of(dtype: object) -> str:
    """Return a polars type in the words of messages, such as "whole numbers"."""
    name = str(dtype)
    names = {
        "Float": "fractions",
        "Int": "whole numbers",
        "UInt": "whole numbers",
        "String": "text",
    }
    names |= {"Date": "dates", "Null": "no values", "List": "lists", "Struct": "objects"}
    names |= {"Boolean": "true and false"}
    return next((word for start, word in names.items() if name.startswith(start)), name)


def words_of(cells: pl.Series) -> pl.Series | None:
    """Return a polars column of text, whole numbers or booleans as a column of text.

    Text is stripped; fractions that are all whole count as whole numbers. Missing cells stay
    missing. None for columns of other types.
    """
    import polars as pl

    kind = cells.dtype
    if kind in (pl.String, pl.Categorical, pl.Enum):
        return cells.cast(pl.String).str.strip_chars()
    if kind == pl.Boolean or kind.is_integer():
        return cells.cast(pl.String)
    if kind.is_float() and bool(((cells % 1 == 0) | cells.is_null() | cells.is_nan()).all()):
        return cells.fill_nan(None).cast(pl.Int64, strict=False).cast(pl.String)
    return None


#: Values of a column that are listed instead of its range.
FEW_WORDS = 4


#: Numbers with decimal commas, and percent signs or none.
WITH_COMMAS = r"^\s*-?\d+(,\d+)?\s*%?\s*$"


def has_commas(words: pl.Series) -> bool:
    """Return whether all words of a text column are numbers, some of which have decimal commas.

    Percent signs may follow. ``words`` is a polars column, whose missing cells are ignored.
    """
    known = words.drop_nulls()
    return bool(known.str.contains(WITH_COMMAS).all() and known.str.contains(",").any())


def of_commas(sql: str, words: pl.Series) -> str:
    """Return SQL that converts ``sql``, numbers written with decimal commas, to numbers.

    Where the column's ``words`` have percent signs, the numbers are divided by 100.
    """
    signed = bool(words.str.contains("%", literal=True).any())
    plain = f"TRIM(REPLACE({sql}, '%', ''))" if signed else sql
    return f"TRY_CAST(REPLACE({plain}, ',', '.') AS DOUBLE){' / 100' * signed}"


#: How a number out of another is written, such as "8/10".
OUT_OF = r"^\s*(\d+(?:\.\d+)?)\s*/\s*(\d+)\s*$"


def out_of(words: pl.Series) -> int:
    """Return the number that all cells of a text column are out of: 10 for "8/10", "7/10", ….

    ``words`` is a polars column. It is 0 if cells are not written so, are out of different numbers,
    or exceed it.
    """
    import polars as pl

    known = words.drop_nulls()
    if not len(known) or not known.head(1).str.contains(OUT_OF).all():
        return 0
    wholes = known.str.extract(OUT_OF, 2).unique()
    if len(wholes) != 1 or wholes[0] is None or int(wholes[0]) < 2:
        return 0
    parts = known.str.extract(OUT_OF, 1).cast(pl.Float64)
    return int(wholes[0]) if bool((parts <= int(wholes[0])).all()) else 0


def of_parts(sql: str, whole: int) -> str:
    """Return SQL that converts ``sql``, cells such as "8/10", to fractions; ``whole`` is 10."""
    return f"CAST(SPLIT_PART({sql}, '/', 1) AS DOUBLE) / {whole}"


def halved_limits(sql: str, words: Sequence[str]) -> tuple[str, str] | None:
    """Return (SQL, condition) by which cells such as "<1" count as half the number.

    The SQL makes numbers of all cells; the condition says in words how limits count. ``sql`` is the
    column, and ``words`` are all its words that are no numbers. None for other words, and for more
    than three different limits.
    """
    limits = {word: re.fullmatch(r"[<≤]=?\s*(\d+(?:\.\d+)?)", word.strip()) for word in words}
    if not 0 < len(limits) <= MOST_LIMITS or not all(limits.values()):
        return None
    halves = {word: float(found[1]) / 2.0 for word, found in limits.items() if found}
    cases = " ".join(f"WHEN {sql} = '{word}' THEN {half:g}" for word, half in halves.items())
    counts = " and ".join(f"{word!r} counts as {half:g}" for word, half in halves.items())
    return f"CASE {cases} ELSE TRY_CAST({sql} AS DOUBLE) END", counts


def literal(value: object, cells: pl.Series) -> str:
    """Return a value of a column as an SQL literal: text in single quotes, numbers as they are.

    ``cells`` is the polars column, whose type decides.
    """
    import polars as pl

    if cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def range_of(cells: pl.Series) -> str:
    """Return a phrase such as "0.1 to 0.9, 57 values"; "57 values" if the column has no numbers.

    ``cells`` is a polars column; values are counted once each.
    """
    if not cells.dtype.is_numeric() or not cells.len():
        return f"{cells.n_unique()} values"
    low, top = (float(x) for x in (cells.min() or 0, cells.max() or 0))  # type: ignore[arg-type]
    return f"{low:g} to {top:g}, {cells.n_unique()} values"


def described(head: pl.DataFrame) -> str:
    """Return a clause with the kind and range, or the values, of each column.

    An example is "y (0, 1); p (fractions 0.1 to 0.9, 57 values)". ``head`` are the first rows; at
    most 20 columns are described.
    """
    listed = []
    for column in head.columns[:20]:
        cells, name = head[column].drop_nulls(), cut(column)
        words = words_of(cells) if cells.len() else None
        if words is not None and words.n_unique() <= FEW_WORDS:
            listed.append(f"{name} ({', '.join(map(cut, sorted(words.unique().to_list())))})")
        elif cells.dtype.is_numeric():
            listed.append(f"{name} ({kind_of(cells.dtype)} {range_of(cells)})")
        else:
            listed.append(f"{name} ({kind_of(cells.dtype)}, {cells.n_unique()} values)")
    return "; ".join(listed) + "; …" * (head.width > 20)


#: Decimals of numbers of 32 and 16 bits that are read as they were written.
FLOAT_DECIMALS = {"float32": 1e6, "float16": 1e3}


def as_decimals(values: FloatArray) -> FloatArray:
    """Return numbers of 16 and 32 bits as float64 decimals, same shape: 0.1 for 0.10000000149.

    A number of 32 bits becomes the decimal of 6 places that rounds to it, if there is one; of 16
    bits it has 3 places. Arrays of other types are returned unchanged.
    """
    tens = FLOAT_DECIMALS.get(str(values.dtype))
    if tens is None:
        return values
    exact = values.astype(np.float64)
    decimal = np.rint(exact * tens) / tens
    return np.where(decimal.astype(values.dtype) == values, decimal, exact)


#: Words in names of columns that hold whole percents; cents are prices of contracts for a dollar.
PERCENT = frozenset(
    "pop percent percentage pct chance prob probability conf confidence cents".split()  # noqa: SIM905
)


#: Words in names of columns that hold hundredths of percents.
BASIS = frozenset(("bp", "bps"))


#: Least size of American odds.
LEAST_AMERICAN_ODDS = 100.0


def may_be_american(values: FloatArray) -> bool:
    """Return whether numbers (n,) may be American odds: whole, and none between −100 and 100.

    Amounts of 100 and more may be American odds as well; see :func:`is_american`.
    """
    values = values[np.isfinite(values)]
    far = values.size > 0 and bool((np.abs(values) >= LEAST_AMERICAN_ODDS).all())
    return far and bool((values % 1 == 0).all())


def is_american(values: FloatArray) -> bool:
    """Return whether numbers (n,) look like American odds: of both signs, none within ±100."""
    both = bool((values < 0.0).any() and (values > 0.0).any())
    return both and may_be_american(values)


def of_american(values: FloatArray) -> FloatArray:
    """Return the probabilities (n,) that American odds (n,) imply, without removing the margin.

    Odds of −150 imply 150 / 250, odds of +150 imply 100 / 250.
    """
    size = np.abs(values)
    return np.asarray(
        np.where(values < 0.0, size, LEAST_AMERICAN_ODDS) / (size + LEAST_AMERICAN_ODDS)
    )


def american_odds(sql: str, text: bool = False) -> str:
    """Return the probability that American odds imply as SQL; ``sql`` is their column.

    ``text`` says that it is a column of text, such as "+126", which has to be converted.
    """
    x = f"CAST({sql} AS DOUBLE)" if text else sql
    return f"CASE WHEN {x} < 0 THEN -{x} / (100.0 - {x}) ELSE 100.0 / (100.0 + {x}) END"
