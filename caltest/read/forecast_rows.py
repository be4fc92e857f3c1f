"""Tables of forecasts that are revised: one row a forecast, with its question and time.

:func:`read_forecasts` finds question, time and probability by the contract or by expressions, for
:class:`caltest.Revisions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from caltest._base.arrays import AnyArray
from caltest.errors import InvalidPredictionsError, Reading
from caltest.read.contract import PROBABILITIES
from caltest.read.expressions import Term, key, quoted, terms_of
from caltest.read.grade_tables import CountTable, count_table


@dataclass(frozen=True)
class ForecastRows:
    """Columns of shape (n,) of a table of forecasts, and a note that says how it was read.

    ``outcomes`` and ``groups`` are None where no column was named for them.
    """

    ids: AnyArray
    times: AnyArray
    probs: AnyArray
    outcomes: AnyArray | None
    groups: AnyArray | None
    note: str


def read_forecasts(
    source: object,
    *,
    ids: str,
    time: str,
    probs: str | None = None,
    label: str | None = None,
    groups: str | None = None,
    where: str | None = None,
    sheet: str | None = None,
) -> ForecastRows:
    """Read forecasts of questions over time from a file or a table.

    Every argument but ``source`` and ``sheet`` is a column or an expression in SQL. Without
    ``probs`` the one column is read whose name is on the list of probabilities of the contract.
    InvalidPredictionsError where none or several fit, and where a question or time is missing.
    """
    with count_table(source, sheet) as table:
        wanted = {"ids": ids, "time": time, "probs": probs or _probability(table)}
        wanted |= {"label": label} if label else {}
        wanted |= {"groups": groups} if groups else {}
        found: dict[str, Term] = {}
        for what, expression in wanted.items():
            listed = terms_of(expression, table.table.schema)
            if len(listed) != 1:
                raise InvalidPredictionsError(f"{what} is one column or expression: {expression}")
            found[what] = listed[0]
        frame = table.cells(found, where).frame
        columns = {what: frame[f"{what}:0"] for what in found}
        for what in ("ids", "time", "groups"):
            column = columns.get(what)
            if column is not None and column.null_count():
                row = int(column.is_null().arg_max() or 0)
                raise InvalidPredictionsError(
                    f"{what}: row {row + 1} of those that are read is empty, and each needs one",
                    [Reading({"where": f"{quoted(found[what].name)} IS NOT NULL"})]
                    if found[what].column
                    else [],
                )
        arrays = {what: column.to_numpy() for what, column in columns.items()}
    parts = [f"{what} from {term.name}" for what, term in found.items()]
    kept = "" if where is None else f", those where {where}"
    return ForecastRows(
        arrays["ids"],
        arrays["time"],
        arrays["probs"],
        arrays.get("label"),
        arrays.get("groups"),
        f"read {len(frame)} forecasts{kept}: {', '.join(parts)}",
    )


def _probability(table: CountTable) -> str:
    """Return the one column whose name the contract lists for probabilities, as SQL.

    InvalidPredictionsError if there is none, or more than one.
    """
    fit = [name for name in table.names if key(name) in PROBABILITIES]
    if len(fit) == 1:
        return quoted(fit[0])
    if fit:
        raise InvalidPredictionsError(
            f"the forecast could be {' or '.join(fit)}",
            [Reading({"probs": quoted(name)}, f"{name} is meant") for name in fit],
        )
    raise InvalidPredictionsError(
        f"no column is called as a probability, among {', '.join(table.names)}: name it",
        [Reading({"probs": "COLUMN"})],
    )
