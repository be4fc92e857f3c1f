"""Several files: of one model, read as one table; of several models, brought into one order."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from itertools import combinations
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.state import content_mark
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.io.assembly import source_of
from caltest.predictions import matching
from caltest.tables import cells
from caltest.tables.chosen import Chosen, chosen_of
from caltest.tables.columns import choose_labels, refuse_unknown
from caltest.tables.names import IDS, MODELS, key, words
from caltest.tables.source import Column, Request, Source

#: What names of files call models; each is told from others by the word that it is in.
_FAMILIES = re.compile(
    "model|baseline|recalibrated|gpt|claude|llama|gemini|mistral|qwen|deepseek|bert|resnet|vgg|"
    "densenet|lenet|vit|xgb|lgbm|lightgbm|catboost|forest|logreg|logistic|svm|bayes"
)
#: Logarithm of the chance below which equal labels in one order are no chance.
_SURPRISE = float(np.log(1e-6))


def parts_of(paths: object) -> list[Path]:
    """Return the files that paths and patterns name, those of patterns in order."""
    if isinstance(paths, (str, PathLike)):
        paths = [paths]
    elif not (isinstance(paths, Sequence) and all(isinstance(p, (str, PathLike)) for p in paths)):
        raise TypeError(
            f"path is a {type(paths).__name__}, not the names of files: values in memory are for "
            "Predictions.of(probs, labels), tallies for Tallies.of or Tallies.from_dask"
        )
    if not paths:
        raise InvalidPredictionsError("paths is empty: name a file")
    parts: list[Path] = []
    for path in map(fspath, paths):
        pattern = bool(set("*?[") & set(path)) and not Path(path).exists()
        matches = sorted(glob.glob(path)) if pattern else [path]
        if not matches:
            raise FileNotFoundError(f"no file is like {path}")
        if path != "-" and not Path(matches[0]).exists():
            raise FileNotFoundError(f"there is no file {path}")
        parts += map(Path, matches)
    for i, part in enumerate(parts):
        if part in parts[:i]:
            raise StatisticError(f"{part} is named twice: each part counts once")
    return parts


def refuse_pooling(parts: Sequence[Path], one_model: bool = False) -> dict[str, Path]:
    """Refuse a file that is a copy of another, and files that names say are of several models.

    Returns the files by their content.
    """
    by_content: dict[str, Path] = {}
    for part in parts:
        other = by_content.setdefault(content_mark(part), part)
        if other is not part:
            raise StatisticError(f"{part} is a copy of {other}: each part counts once")
    names = {word for part in parts if (word := _model_in(part.stem))}
    if len(names) > 1 and not one_model:
        raise StatisticError(
            f"these files seem to be of several models ({', '.join(sorted(names))}), which are not "
            f"pooled unasked: {_of_two(parts)}",
            [("compare",), ("--one-model",)],
        )
    return by_content


def _of_two(parts: Sequence[Path | str]) -> str:
    """Say which commands take files of two models, and what to say of files of one."""
    new, old = parts if len(parts) == 2 else ("NEW", "OLD")
    return (
        f"caltest compare {new} {old} compares them, caltest gate {new} --against {old} --margin "
        "0.01 says whether the first may replace the second; if they are one model's, say "
        "one_model=True"
    )


def _model_in(stem: str) -> str:
    """Return what the name of a file calls the model, if anything."""
    words = re.split(r"[^a-z0-9.]+", stem.lower())
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "model":  # model_a, model_2
            return f"model {following}"
        if _FAMILIES.search(word):
            return word
    return ""


def pooled(parts: Sequence[Path], request: Request) -> tuple[Source, Chosen]:
    """Return several files as one table, and which of its columns are what, as the first says."""
    with source_of(parts[0], request) as first:
        chosen = chosen_of(first, request)
        names, log = first.names, first.log
    models = [name for name in names if key(name) in MODELS]
    heads, ids = list(dict.fromkeys([*chosen.wanted, *models])), _ids_among(names)
    tables: list[dict[str, Column]] = []
    notes: list[str] = []
    for part in parts:
        with source_of(part, request) as source:
            refuse_unknown(heads, source.names)
            ids = [name for name in ids if name in source.names]
            read = list(dict.fromkeys([*heads, *ids]))
            tables.append(dict(zip(read, map(np.atleast_1d, source.read(read)), strict=True)))
            notes += source.notes
            for name in heads:
                shape, first_shape = (table[name].shape[1:] for table in (tables[-1], tables[0]))
                if shape != first_shape:
                    raise InvalidPredictionsError(
                        f"column {name} holds rows of shape {shape}, and of shape {first_shape} "
                        f"in {parts[0].name}"
                    )
    every = dict.fromkeys([*heads, *ids])
    columns = {name: np.concatenate([table[name] for table in tables]) for name in every}
    lengths = [len(table[heads[0]]) for table in tables]
    sizes = tuple((part.name, n) for part, n in zip(parts, lengths, strict=True))
    source = Source(
        [name for name in names if name in columns or name not in _ids_among(names)],
        lambda heads: [columns[name] for name in heads],
        log=log,
        notes=tuple(dict.fromkeys(notes)),
        parts=sizes,
    )
    return source, chosen


def _ids_among(names: Sequence[str]) -> list[str]:
    """Return the first column whose name says that it names rows."""
    return [name for name in names if IDS & {*words(name)}][:1]


def refuse_same_labels(probs: FloatArray, labels: IntArray, source: Source) -> None:
    """Refuse files with the same labels in the same order: predictions of the same rows.

    The order is also that of the first column whose name says that it names rows.
    """
    sizes = source.parts
    ends = np.cumsum([size for _, size in sizes])
    rows = [np.arange(end - size, end) for end, (_, size) in zip(ends, sizes, strict=True)]
    pairs = [*zip(combinations(sizes, 2), combinations(rows, 2), strict=True)]
    for name in _ids_among(source.names):
        ids = cells.marks(source.read([name])[0])
        rows = [part[np.argsort(ids[part], kind="stable")] for part in rows]
        ordered = zip(combinations(sizes, 2), combinations(rows, 2), strict=True)
        pairs += [(two, (a, b)) for two, (a, b) in ordered if np.array_equal(ids[a], ids[b])]
    for (a, b), (first, second) in pairs:
        if a[1] != b[1] or not np.array_equal(labels[first], labels[second]):
            continue
        shares = np.bincount(labels[first]) / a[1]
        if a[1] * np.log((shares**2).sum()) < _SURPRISE and (probs[first] != probs[second]).any():
            raise InvalidPredictionsError(
                f"{a[0]} and {b[0]} have the same labels in one order and other probabilities, "
                f"as two models of the same rows have: {_of_two([a[0], b[0]])}",
                [("compare",), ("--one-model",)],
            )


def shared_ids(paths: Sequence[Path]) -> str | None:
    """Return the column by which the rows of all files are named, as its name says."""
    with ExitStack() as stack:
        return matching.shared_ids([stack.enter_context(source_of(p, Request())) for p in paths])


def lent_labels(paths: Iterable[Path]) -> dict[Path, dict[str, Path]]:
    """Return the label= of files without the column of labels that another has: that other."""
    columns: dict[Path, list[str]] = {}
    with ExitStack() as stack:
        sources = {path: stack.enter_context(source_of(path, Request())) for path in paths}
        for path, source in sources.items():
            with suppress(InvalidPredictionsError):
                columns[path] = choose_labels(source, None).probs
        return {
            path: {"label": other}
            for path in sources.keys() - columns.keys()
            for other, labels in columns.items()
            if not {*labels} & {*sources[path].names}
        }
