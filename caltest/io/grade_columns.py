"""Which column of a table of grades is which, by its name in five languages or by its cells."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import product

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray
from caltest.errors import InvalidPredictionsError
from caltest.tables import cells
from caltest.tables.names import says_percent, words
from caltest.tables.source import Source, is_number

#: What columns of grades are called in English, German, French, Italian and Spanish, in lower case
#: and without ``BESIDE``; the second row of names if there is none of the first.
TERMS = {
    what: tuple(tuple(name.replace("_", " ") for name in tier.split()) for tier in tiers)
    for what, tiers in {
        "n": (
            "n obligors borrowers accounts customers clients loans patients exposures impressions "
            "schuldner kreditnehmer kunden kredite emprunteurs débiteurs prêts expositions "
            "debitori clienti mutuatari prestiti esposizioni "
            "deudores clientes prestatarios préstamos exposiciones",
            "rows total size count anzahl observations osservazioni observaciones effectif",
        ),
        "events": (
            "events defaults defaulted defaulters ausfälle ausfaelle ausgefallen ausgefallene "
            "défauts défaillances insolvenze inadempienze impagos incumplimientos",
            "clicks observed bad bads default deaths d",
        ),
        "probability": (
            "probability pd ctr p probability_default default_probability "
            "ausfallwahrscheinlichkeit probabilité probabilité_défaut probabilità "
            "probabilità_default probabilità_insolvenza probabilidad probabilidad_impago "
            "probabilidad_incumplimiento",
            "predicted forecast risk",
        ),
        "names": (
            "grade rating bin name rating_grade risk_grade rating_class ratingklasse ratingstufe "
            "bonitätsklasse bonitaetsklasse risikoklasse notation classe_notation classe_rating "
            "classe_risque classe_rischio calificación clase_riesgo",
            "pool segment band bucket class score_band risk_band risk_class classe clase note "
            "grado nota",
        ),
    }.items()
}
#: Columns that a table of grades must have.
REQUIRED = TERMS.keys() - {"names"}
#: Words that stand beside these; of counts also those of ``OBSERVED``.
BESIDE = {
    *("number", "no", "num", "nr", "nb", "n", "count", "of", "in", "percent", "pct", "ø"),
    *("predicted", "estimated", "assigned", "model", "mean", "average", "avg", "master", "scale"),
    *("anzahl", "davon", "mittlere", "prognostizierte", "beobachtete", "skala"),
    *("nombre", "de", "d", "des", "du", "moyenne", "moyen", "estimée", "numero", "di", "dei"),
    *("delle", "media", "stimata", "número", "del", "los", "estimada"),
}
OBSERVED = {"observed", "actual", "beobachtete", "observés", "osservati", "observados"}
#: Words of which the name of a row consists that sums up the others.
TOTALS = {
    *("total", "totals", "grand", "sum", "all", "overall", "portfolio", "gesamt", "summe"),
    *("gesamtsumme", "insgesamt", "gesamtportfolio", "portefeuille", "ensemble", "totaux"),
    *("totale", "complessivo", "portafoglio", "suma", "general", "cartera"),
}
#: What stands for a column that nothing tells.
PLACE = "COLUMN"
#: A whole number in groups of three digits.
GROUPED = re.compile(r"[1-9]\d{0,2}(?:[\s,'’]\d{3})+")


def column_called(names: list[str], what: str) -> str | None:
    """Return the column that is called so, or the only PD; more than one is refused."""
    counts = what in ("n", "events")
    beside = BESIDE | OBSERVED if counts else BESIDE
    for tier in TERMS[what]:
        likely = [n for n in names if _bare(n, beside) in tier and not (counts and says_percent(n))]
        if len(likely) > 1:
            raise InvalidPredictionsError(
                f"{what} could be column {' or '.join(likely)}; say {what}={likely[0]!r} "
                f"(--{what} {likely[0]!r}) or another of them",
                [(f"--{what}", name) for name in likely],
            )
        if likely:
            return likely[0]
    likely = [name for name in names if re.match(r"PD\b", name)] * (what == "probability")
    return likely[0] if len(likely) == 1 else None


def _bare(name: str, beside: set[str]) -> str:
    """Return the words of a name in lower case, but those beside others, as those in brackets."""
    name = re.sub(r"\(.*?\)", "", name) or name
    parts = words(name)
    return " ".join([word for word in parts if word not in beside] or parts)


def is_sum(name: str) -> bool:
    """Say whether a row is called as one that sums up the others."""
    return bool(words(name)) and {*words(name)} <= TOTALS


def are_words(column: AnyArray) -> bool:
    """Say whether most cells are no numbers."""
    return column.dtype.kind in "UO" and 2 * sum(map(is_number, column.tolist())) < column.size


def likely_options(source: Source, heads: dict[str, str], absent: list[str]) -> tuple[str, ...]:
    """Return options with columns that may be meant.

    Whole numbers, the smaller ones events, fractions that are no frequency of these, and words.
    """
    columns = {name: c for name, c in source.readable(source.names).items() if c.ndim == 1}
    numbers: dict[str, FloatArray] = {}
    for name, column in columns.items():
        with suppress(InvalidPredictionsError):
            signed = "%" in str(column[0])
            numbers[name] = cells.with_gaps(ungrouped(column), name, True if signed else None)
    free = [name for name in numbers if name not in heads.values()]
    whole = [name for name in free if (numbers[name] % 1 == 0).all()]
    counters = [name for name in whole if _counts_on(numbers[name])]
    bounds = {name: ((column < 0) | (column > 100)).any() for name, column in numbers.items()}
    fractions = [name for name in free if name not in whole and not bounds[name]]
    fractions.sort(key=lambda name: (numbers[name] > 1.0).any())  # money may be below 100
    whole = [name for name in whole if name not in counters]
    counts = [[heads[w]] if heads.get(w) in numbers else whole for w in ("n", "events")]
    pairs = [
        (n, events)
        for n, events in product(*counts)
        if n != events and (numbers[events] <= numbers[n]).all() and (numbers[n] > 0).all()
    ]
    likely: dict[str, str] = {}
    if pairs:
        likely = dict(zip(("n", "events"), pairs[0], strict=True))
        rate = numbers[likely["events"]] / numbers[likely["n"]]
        gaps = [
            min(np.nanmax(np.abs(numbers[f] / unit - rate)) for unit in (1, 100)) for f in fractions
        ]
        fractions = [fractions[place] for place in np.argsort(gaps)[::-1]]
    likely |= {"probability": fractions[0]} if fractions else {}
    texts = [name for name in columns if name not in numbers] + counters
    likely |= {"names": texts[0]} if texts else {}
    wanted = [*absent, *["names"] * ("names" in likely and heads.keys() | {*absent} == REQUIRED)]
    options = [word for what in wanted for word in (f"--{what}", likely.get(what, PLACE))]
    percents = "probability" in absent and fractions and (numbers[fractions[0]] > 1.0).any()
    return (*options, *["--percent"] * bool(percents))


def _counts_on(numbers: FloatArray) -> bool:
    """Say whether numbers are those of rows, or years."""
    return bool((np.diff(numbers) == 1).all() or ((numbers >= 1900) & (numbers <= 2100)).all())


def ungrouped(column: AnyArray) -> AnyArray:
    """Return counts without what parts their thousands, where every larger one has groups."""
    texts = [str(cell).strip() for cell in column.tolist()] if column.dtype.kind in "UO" else [""]
    parted = [text for text in texts if not re.fullmatch(r"\d{1,3}", text)]
    if not parted or not all(map(GROUPED.fullmatch, parted)):
        return column
    return np.array([int(re.sub(r"\D", "", text)) for text in texts])
