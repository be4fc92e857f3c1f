"""The report: Markdown and HTML from templates."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from caltest._version import __version__
from paper_replications.items import Outcome
from paper_replications.model import Context, show


def write(outcomes: Sequence[Outcome], context: Context) -> list[Path]:
    """Write ``replications.md`` and ``replications.html``; return their paths."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("paper_replications"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=lambda name: name is not None and name.endswith(".html"),
    )
    environment.filters["cell"] = _cell
    environment.filters["rendered"] = _rendered
    environment.filters["beside"] = lambda path: os.path.relpath(path, context.out)
    context.out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in ("replications.md", "replications.html"):
        text = environment.get_template(name).render(
            outcomes=outcomes,
            context=context,
            version=__version__,
            checks=[c for o in outcomes for c in o.result.checks],
        )
        path = context.out / name
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _cell(value: Any) -> str:
    text = show(value) if isinstance(value, float) else str(value)
    return text.replace("|", "\\|")


def _rendered(text: str) -> Any:
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    return Markup(MarkdownIt("commonmark").render(text))
