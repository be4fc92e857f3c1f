"""Sphinx configuration: ``sphinx-build -W -b html docs build/html`` and ``-b doctest``."""

import caltest

project = "caltest"
author = "The caltest developers"
copyright = author
release = version = caltest.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

exclude_patterns = ["_build", "simulations"]
html_theme = "furo"
html_title = "caltest"

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = False
numpydoc_show_class_members = False

# The examples in docstrings are written from inside their modules.
doctest_global_setup = """
import numpy as np
from caltest import *
from caltest.inference import holm
"""
# Shown in reports as they are printed: blank lines count, runs of spaces count.
doctest_default_flags = 0
