"""How numbers are written: one rule for text, HTML, LaTeX and pictures."""

from __future__ import annotations

from math import floor, inf, isfinite, log10, nan

#: p-values below this are printed as a bound.
SMALLEST_SHOWN = 1e-12
#: More decimals than this become a power of ten.
MOST_DECIMALS = 7


def decimals(spread: float) -> int:
    """Return how many decimals show two significant digits of a positive number."""
    return max(0, 1 - floor(log10(float(f"{spread:.1e}"))))


def format_value(value: float, spread: float = nan) -> str:
    """Return a number with as many decimals as show two significant digits of its spread.

    Without a spread it has four decimals, or two significant digits where that takes more.

    Examples
    --------
    >>> format_value(0.0392, 0.0105), format_value(0.0392), format_value(-9.21e-4)
    ('0.039', '0.0392', '-0.00092')
    """
    if not isfinite(value):
        return "–" if value != value else "∞" if value > 0.0 else "-∞"
    has_spread = isfinite(spread) and spread > 1e-15
    if abs(value) < 1e-15:  # also of -0.0, and of what rounding leaves
        return "0"
    digits = decimals(spread) if has_spread else max(4, decimals(abs(value)))
    if digits > MOST_DECIMALS or (not has_spread and abs(value) >= 1e6):
        return f"{value:.2g}" if has_spread else f"{value:.2e}"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def format_range(low: float, high: float, between: str = " to ") -> str:
    """Return two ends with the decimals of a quarter of their distance, an sd or so."""
    return between.join(format_value(end, spread_of(low, high)) for end in (low, high))


def spread_of(low: float | None, high: float | None) -> float:
    """Return the spread that an interval stands for: a quarter of its length; NaN for none."""
    length = nan if low is None or high is None else (high - low) / 4.0
    return length if 0.0 < length < inf else nan


def with_sd(mean: float, sd: float) -> str:
    """Return a mean and its standard deviation, with two significant digits of the latter."""
    return f"{format_value(mean, sd)} ± {format_value(sd, sd)}"


def in_sd(value: float, sd: float) -> str:
    """Return a value in standard deviations; beyond a thousand only that is said.

    Examples
    --------
    >>> in_sd(0.3, 0.1), in_sd(-1e6, 1.0), in_sd(0.3, 0.0)
    ('+3.0 sd', 'beyond -1000 sd', '–')
    """
    if sd == 0.0:
        return "–"
    z = value / sd
    return f"{z:+.1f} sd" if abs(z) < 1000.0 else f"beyond {'+' if z > 0.0 else '-'}1000 sd"


def in_percent(share: float) -> str:
    """Return a share in percent with two significant digits, never as a power of ten."""
    return f"{float(f'{100.0 * share:.2g}'):g} %"


def percent(share: float, other: float) -> str:
    """Return a share in percent, with two significant digits of its distance from another."""
    gap = abs(share - other)
    digits = max(decimals(gap) - 2, 1) if gap > 1e-6 else 1
    return f"{100.0 * share:.{digits}f} %"


def format_p(p: float, alpha: float = nan) -> str:
    """Return a p-value as it is printed: never 0, with digits that tell it apart from alpha."""
    if p < SMALLEST_SHOWN:
        return f"< {SMALLEST_SHOWN:.0e}"
    text = f"{p:.3f}" if p >= 0.01 else f"{p:.4f}" if p >= 0.001 else f"{p:.1e}"
    finer = (f"{p:.{digits}f}" for digits in range(4, 13))
    return text if float(text) != alpha else next((t for t in finer if float(t) != alpha), text)
