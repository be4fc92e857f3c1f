"""Sphinx configuration: ``sphinx-build -W -b html docs docs/_build`` and ``-b doctest``."""

import re
import runpy
from pathlib import Path

import caltest

project = "caltest"
author = "The caltest developers"
copyright = author
release = version = caltest.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Tutorials are run once for all builders, each from a fresh start; an error ends the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / ".jupyter_cache")
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

exclude_patterns = ["_build", "simulations"]
html_theme = "furo"
html_title = "caltest"
html_static_path = ["_static"]
html_css_files = ["wide.css"]  # printed reports have 118 columns

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = False
numpydoc_show_class_members = False

# Docstring examples run with the tests; the doctest builder runs those of these pages only.
doctest_test_doctest_blocks = ""
# Printed reports must match to the blank.
doctest_default_flags = 0
# Files that the pages write do not stay.
doctest_global_setup = """
import os, tempfile
os.chdir(tempfile.mkdtemp())
"""


def escape_bars(app, what, name, obj, options, lines):
    """Keep |x| in formulas, but not in literals and code, from being read as a substitution."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split("(``.*?``)", line)
            parts[::2] = [re.sub(r"(?<!\\)\|", r"\|", part) for part in parts[::2]]
            lines[i] = "".join(parts)


def add_returns(app, what, name, obj, options, lines):
    """Say what a verb returns by its annotation, where its docstring has no more to say."""
    kind = getattr(obj, "__annotations__", {}).get("return")
    if what == "function" and "Parameters" in lines and "Returns" not in lines and kind:
        after = ("Raises", "Warns", "Notes", "References", "Examples")
        at = next((i for i, line in enumerate(lines) if line in after), len(lines))
        lines[at:at] = ["Returns", "-------", str(kind), ""]


def draw_gallery(app):
    """Draw the pictures, whose page is read afterwards; other builders make do with a page."""
    gallery = Path(app.srcdir) / "gallery"
    if app.builder.format == "html" or not (gallery / "index.md").exists():
        runpy.run_path(str(gallery / "make.py"))["main"]()


def setup(app):
    app.connect("builder-inited", draw_gallery)
    app.connect("autodoc-process-docstring", add_returns, priority=100)  # before numpydoc
    app.connect("autodoc-process-docstring", escape_bars)
