"""Dates as people write them, in seconds since 1970; what can be read in two ways is refused."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray
from caltest._base.naming import nth
from caltest.errors import InvalidPredictionsError

#: A date of three numbers and what follows, such as a clock; one of those with twelve hours.
_NUMBERS = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?!\d)(.*)")
_HALF_DAYS = re.compile(r"(.*\s)(\d{1,2})(:[\d:]+)\s*([AP])\.?M\.?", re.I)
#: A month or quarter alone.
_PART = re.compile(r"(\d{4})(?:-(\d\d)|[- ]?Q([1-4]))", re.I)
#: How dates are written that everybody reads alike.
_PLAIN = "write dates as 2024-12-31"


def seconds_of(times: AnyArray) -> FloatArray:
    """Return the seconds from 1970 to moments in text; those without a zone are of UTC.

    Of 31/12/2024 some cell has to show whether the day is first, and none may show the contrary; of
    31.12.2024 it is.
    """
    texts = np.char.strip(times.astype(str))
    distinct, rows, places = np.unique(texts, return_index=True, return_inverse=True)
    moments = [_moment(text) for text in distinct.tolist()]
    matches = {i: _NUMBERS.fullmatch(distinct[i]) for i, when in enumerate(moments) if when is None}
    last = {i: match for i, match in matches.items() if match and len(match[4]) == 4}
    month_first = bool(last) and _is_month_first(last, rows)
    for i, match in matches.items():
        if match:
            first, second, third = match[1], match[3], match[4]
            if i in last:
                day, month = (second, first) if month_first else (first, second)
                first, second, third = third, month, day
            moments[i] = _moment(f"{first}-{second:0>2}-{third:0>2}{match[5]}")
    for row in sorted(rows[i] for i, when in enumerate(moments) if when is None)[:1]:
        raise InvalidPredictionsError(
            f"time: {nth(row)} is {str(texts[row])!r}; times are numbers, dates such as 2024-12-31,"
            " also with time and zone as 2024-12-31T23:59+01:00, or days such as 31.12.2024"
        )
    stamps = [(m if m.tzinfo else m.replace(tzinfo=UTC)).timestamp() for m in moments if m]
    return np.array(stamps)[places.ravel()]


def calendar_days(numbers: FloatArray) -> AnyArray | None:
    """Return the days that whole numbers such as 20241231 are, None unless all are days."""
    if not numbers.size or not ((numbers >= 19000101) & (numbers <= 21001231)).all():
        return None
    whole = numbers.astype(np.int64)
    months = ((whole // 10000 - 1970) * 12 + whole // 100 % 100 - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (whole % 100 - 1)
    right = (numbers == whole) & (days.astype("datetime64[M]") == months)  # which 20240230 is not
    right &= (whole // 100 % 100 - 1) // 12 == 0
    return days if bool(right.all()) else None


def _is_month_first(last: dict[int, re.Match[str]], rows: AnyArray) -> bool:
    """Say whether dates with the year last begin with the month; refuse what nothing tells."""
    days = [i for i, match in last.items() if int(match[1]) > 12 >= int(match[3])]
    months = [i for i, match in last.items() if int(match[3]) > 12 >= int(match[1])]
    one = next((i for i, m in last.items() if m[2] != "." and int(m[1]) != int(m[3])), None)
    cell = {i: f"{nth(int(rows[i]))} is {match[0]!r}" for i, match in last.items()}
    if days and months:
        raise InvalidPredictionsError(
            f"time: {cell[days[0]]}, the day first, and {cell[months[0]]}, the month first: "
            f"{_PLAIN}"
        )
    if one is not None and not days and not months:
        a, b, year = last[one][1], last[one][3], last[one][4]
        raise InvalidPredictionsError(
            f"time: {cell[one]}, which could be {year}-{b:0>2}-{a:0>2} (the day first) or "
            f"{year}-{a:0>2}-{b:0>2} (the month first), and no row tells: {_PLAIN}"
        )
    return bool(months)


def _moment(text: str) -> datetime | None:
    """Return the moment that a text says in one way only, else None."""
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    if part := _PART.fullmatch(text):
        month = part[2] or f"{3 * int(part[3]) - 2:02}"
        text = f"{part[1]}-{month}-01"
    if half := _HALF_DAYS.fullmatch(text):
        hour = int(half[2]) % 12 + 12 * (half[4] in "pP")
        text = f"{half[1]}{hour:02}{half[3]}"
    padded = re.sub(r"\s*(UTC|GMT)$", "+00:00", text)
    padded = re.sub(r"(?<![\d.])(\d)(?![\d.])", r"0\1", padded)
    with suppress(ValueError):
        return datetime.fromisoformat(re.sub(r",?\s+", " ", padded))
    if not re.search(r"[A-Za-z]{3}", text):
        return None
    from email.utils import parsedate_tz  # of months by name

    read = parsedate_tz(f"{text.replace('. ', ' ')} 00:00:00 UTC")
    with suppress(ValueError):
        zone = timezone(timedelta(seconds=read[9] or 0)) if read else UTC
        return datetime(*read[:6], tzinfo=zone) if read else None
    return None
