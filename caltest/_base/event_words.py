"""Words that say whether an event occurred, or a prediction was right."""

from __future__ import annotations

import re

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray

#: Words for a wrong prediction, and for a right one.
RIGHT_WORDS = (
    *(("incorrect", "correct"), ("wrong", "right"), ("wrong", "correct"), ("falsch", "richtig")),
    *(("fail", "pass"), ("failed", "passed")),
)
#: Words for an event that did not occur, and for one that did.
EVENT_WORDS = (
    *(("no", "yes"), ("n", "y"), ("false", "true"), ("negative", "positive"), ("neg", "pos")),
    *(("absent", "present"), ("f", "t"), ("no event", "event"), ("censored", "event")),
    *(("nein", "ja"), ("n", "j"), ("non", "oui"), ("no", "si"), ("no", "sí"), ("no", "sì")),
    *(("nee", "ja"), ("nej", "ja"), ("não", "sim"), ("nie", "tak"), ("ne", "ano")),
    *(("falsch", "wahr"), ("faux", "vrai"), ("falso", "vero"), ("falso", "verdadero")),
    *(("benign", "malignant"), ("benigne", "maligne"), ("gutartig", "bösartig")),
    *(
        ("alive", "dead"),
        ("alive", "died"),
        ("alive", "deceased"),
        ("living", "deceased"),
        ("survived", "died"),
    ),
    *(("legit", "fraud"), ("legitimate", "fraud"), ("ham", "spam"), ("miss", "hit")),
    *(("lost", "won"), ("loss", "win"), ("no rain", "rain"), ("no default", "default")),
    *RIGHT_WORDS,
)
#: How words begin that say that a follow-up ended without an event, else, that with one.
NO_END = re.compile(
    r"0\s*[:=-]|(alive|living|survived|lost|ltfu|without|no|not|none)\b|censor|withdr|.*free$"
)
AN_END = re.compile(
    r"1\s*[:=-]|(dead|died|death|deceased|expired|event|relaps|recur|progress|fail)"
)
#: Words for an outcome that is not known, or not yet.
PENDING = {
    *("pending", "open", "unknown", "unclear", "undetermined", "undecided", "inconclusive"),
    *("unsure", "uncertain", "not sure", "abstain", "abstained", "skipped", "ungraded"),
    *("in progress", "ongoing", "not yet", "tbd", "awaiting", "waiting", "under review"),
    *("ausstehend", "offen", "noch offen", "unbekannt", "unklar", "in bearbeitung", "k.a."),
    *("keine angabe", "en attente", "en cours", "inconnu", "n.d.", "pendiente", "desconocido"),
    *("en curso", "in attesa", "in corso", "sconosciuto", "onbekend", "in behandeling"),
    *("pendente", "desconhecido", "?"),
}


def lowered(texts: AnyArray) -> AnyArray:
    """Return words in lower case, without blanks around them."""
    return np.char.lower(np.char.strip(texts.astype(str)))


def event_of(texts: AnyArray) -> tuple[str, BoolArray] | None:
    """Return the word for the event and where it is, or None where the words are not two such.

    One word alone, as in a batch without events, is enough where it never means both.
    """
    words = {*np.unique(lowered(texts)).tolist()}
    if words and words <= {*(coded := _coded(words))} and coded[1]:
        return coded[1], lowered(texts) == coded[1]
    pairs = [pair for pair in EVENT_WORDS if words and words <= {*pair}]
    if not pairs or (len(words) == 1 and len({pair.index(*words) for pair in pairs}) > 1):
        return None
    yes = pairs[0][1]
    return yes, lowered(texts) == yes


def end_of(texts: AnyArray) -> tuple[str, BoolArray] | None:
    """Return the same of two words for how a follow-up ended, such as disease-free and relapsed."""
    texts = lowered(texts)
    words = [*np.unique(texts).tolist()]
    ends = [word for word in words if not NO_END.match(word)]
    two = len(words) == 2 and len(ends) == 1 and AN_END.match(ends[0])
    return (ends[0], texts == ends[0]) if two else event_of(texts)


def opposites(
    texts: AnyArray, pairs: tuple[tuple[str, str], ...] = RIGHT_WORDS
) -> tuple[str, str] | None:
    """Return the pair of opposite words, no and yes, that both occur, perhaps beside others."""
    words = {*np.unique(lowered(texts)).tolist()}
    pairs = (*pairs, _coded(words)) if all(_coded(words)) else pairs
    return next((pair for pair in pairs if words >= {*pair}), None)


def _coded(words: set[str]) -> tuple[str, str]:
    """Return the words that say their number, as 0:living and 1:deceased do, "" for none."""
    no, yes = ([word for word in words if re.match(rf"{k}\s*[:=-]\s*\D", word)] for k in (0, 1))
    return ("".join(no[:1]), "".join(yes[:1]))
