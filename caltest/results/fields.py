"""The description of a result: what its fields mean, its title, its table and its picture."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from inspect import cleandoc
from textwrap import indent, wrap
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)
#: What types are called in documentation.
TYPES = {"FloatArray": "ndarray{}", "IntArray": "ndarray{}, int"}
#: The end of every list of attributes.
SHARED = "n, n_classes, n_resamples, seed, ended, notes, version\n    As for every :class:`Result`"


def entry(
    meaning: str, kind: str = "", *, default: object = MISSING, transient: bool = False
) -> Any:
    """Describe a field: what it means, and its type in words where that says more.

    Fields after it without a description share this one. A transient field is no part of the
    dictionary form.
    """
    metadata = {"meaning": meaning, "kind": kind} | ({"transient": True} if transient else {})
    return field(default=default, metadata=metadata, repr=not transient, compare=not transient)


@dataclass_transform(frozen_default=True, field_specifiers=(entry, field))
def described(
    *,
    eq: bool = True,
    title: str = "",
    number: str = "",
    procedure: str = "",
    shape: str = "",
    columns: str = "",
    records: str = "",
    of_subgroups: str = "",
    plotter: str = "",
    draws: str = "",
) -> Callable[[Class], Class]:
    """Make a frozen dataclass of a class, with all that is printed, drawn and documented of it.

    ``title`` heads its text; ``number`` is the field that stands for it; ``procedure`` is a
    template of what its recipe begins with; ``columns`` are the attributes of its table, or
    "head=attribute", of the records in the fields ``records`` if these are given, and
    ``of_subgroups`` those of a table of subgroups; ``plotter`` is the function of
    :mod:`caltest.plots` that draws it; ``shape`` is that of its arrays; ``draws`` says what
    ``n_resamples`` counts.
    """
    words = {"title": title, "number": number, "procedure": procedure, "plotter": plotter}
    lists = {"columns": columns, "records": records, "of_subgroups": of_subgroups}
    facts = words | {name: tuple(listed.split()) for name, listed in lists.items()}

    def make(cls: Class) -> Class:
        for name, value in facts.items():
            if value:
                setattr(cls, name, value)
        dataclass(frozen=True, eq=eq)(cls)
        cls.__doc__ = _documented(cls, shape, draws)
        return cls

    return make


def _documented(cls: Any, shape: str, draws: str) -> str:
    """Return a docstring with the section on attributes that its fields tell."""
    names: list[str] = []
    parts: list[str] = []
    entries = [f for f in fields(cls) if not f.kw_only]
    for j, one in enumerate(entries):
        names.append(one.name)
        if j + 1 < len(entries) and "meaning" not in entries[j + 1].metadata:
            continue
        first = entries[j + 1 - len(names)]
        kind = first.metadata["kind"] or _in_words(str(first.type), shape)
        text = "\n".join(f"    {line}" for line in wrap(first.metadata["meaning"], 92))
        parts.append(f"{', '.join(names)} : {kind}\n{text}")
        names = []
    if len(entries) < len(fields(cls)):  # what all results share comes by keyword
        parts.append(SHARED + (f"; ``n_resamples`` {draws}." if draws else "."))
    listed = "\n".join(["Attributes", "----------", *parts])
    head, notes, rest = re.split(r"(\n\nNotes\n|\Z)", cleandoc(cls.__doc__), maxsplit=1)
    return indent(f"{head}\n\n{listed}{notes}{rest}\n", "    ").lstrip()


def _in_words(kind: str, shape: str) -> str:
    """Return an annotation as documentation says it."""
    for name, words in TYPES.items():
        kind = kind.replace(name, words.format(f" of shape {shape}" if shape else ""))
    kind = re.sub(r"tuple\[(\w+), (\.\.\.|\1(, \1)*)\]", r"tuple of \1", kind)
    return kind.replace(" | None", " or None")
