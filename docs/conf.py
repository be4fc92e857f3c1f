"""Sphinx configuration: ``sphinx-build -W -b html docs docs/_build`` and ``-b doctest``."""

import re
import runpy
import tomllib
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from myst_nb.core.read import read_myst_markdown_notebook

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
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Tutorials are run once for all builders, each from a fresh start; an error ends the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / ".jupyter_cache")
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

exclude_patterns = ["_build", "_templates", "simulations", "tutorials/notebooks", "jupyter_execute"]
# The copy button takes the commands of a session, without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "EOF"

# Formulas are MathML, which every current browser draws without a script or a font to download:
# the built site works from disk and behind a strict content security policy.
html_math_renderer = "mathml"

html_theme = "furo"
html_title = "caltest"
html_static_path = ["_static"]
html_css_files = ["wide.css"]  # printed reports have 118 columns

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = True
templates_path = ["_templates"]
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


HERE = Path(__file__).parent
REFERENCE = runpy.run_path(str(HERE.parent / "scripts" / "reference.py"))
#: The page of the reference with all public names, and its lists: module and names.
PAGE = (HERE / "reference.md").read_text(encoding="utf-8")
COMPLETED = REFERENCE["completed"](PAGE)
LISTS = REFERENCE["lists"](COMPLETED)
# The pages of names are made for the lists in files, so that further names need a file.
exclude_patterns.append("api/further.md")
if FURTHER := [n for n in LISTS if n not in REFERENCE["lists"](PAGE)]:
    (HERE / "api").mkdir(exist_ok=True)
    section = REFERENCE["section"]
    further = [section("Further", names, folder=".") for _, names in FURTHER]
    (HERE / "api" / "further.md").write_text("\n".join(further), encoding="utf-8")
    autosummary_generate = ["reference.md", "api/further.md"]


def used_in():
    """Return, for each object of the reference, the pages whose code uses it: {name: [page]}."""
    pages = {
        path.relative_to(HERE).with_suffix("").as_posix(): " ".join(
            re.findall(
                r"^```+.*?^```+$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
            )
        )
        for folder in ("tutorials", "concepts", ".")
        for path in sorted((HERE / folder).glob("*.md"))
    }
    return {
        f"{module}.{name}": [
            page for page, code in pages.items() if re.search(rf"\b(?<!`){name}\(", code)
        ][:6]
        for module, names in LISTS
        for name in names
    }


def see_also():
    """Return, for each object of the reference, up to eight neighbours in its list."""
    return {
        f"{module}.{name}": [
            f"{module}.{other}"
            for other in sorted(names, key=lambda other: abs(names.index(other) - i))[1:9]
        ]
        for module, names in LISTS
        for i, name in enumerate(names)
    }


# Pages of names that differ in case only would overwrite each other on some disks.
_ALL = [f"{module}.{name}" for module, names in LISTS for name in names]
autosummary_filename_map = {
    name: f"{name}-class"
    for name in _ALL
    if name.lower() != name and name.lower() in [other for other in _ALL if other != name]
}
autosummary_context = {
    "shown_members": tomllib.loads((HERE / "members.toml").read_text(encoding="utf-8")),
    "used_in": used_in(),
    "see_also": see_also(),
}


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


def write_notebooks(app):
    """Write each tutorial as a notebook to download; roles of Sphinx become plain text."""
    folder = Path(app.srcdir) / "tutorials" / "notebooks"
    folder.mkdir(exist_ok=True)
    for page in sorted(folder.parent.glob("*.md")):
        if page.stem == "index":
            continue
        text = page.read_text(encoding="utf-8")
        text = re.sub(
            r"\{(?:doc|func|class|ref|mod|download)\}`([^`<]*?)\s*(?:<[^`]*>)?`", r"\1", text
        )
        notebook = read_myst_markdown_notebook(text, path=str(page))
        nbformat.write(notebook, folder / f"{page.stem}.ipynb")


def link_notebook(app, page, source):
    """Put a link to the notebook below the title of a tutorial."""
    folder, _, name = page.partition("/")
    if folder == "tutorials" and name != "index":
        link = f"{{download}}`Download this page as a notebook <notebooks/{name}.ipynb>`"
        source[0] = re.sub(r"^(# .*)$", rf"\1\n\n{link}", source[0], count=1, flags=re.MULTILINE)


def complete_reference(app, page, source):
    """List the public names that no list of the reference has in the section of their room."""
    if page == "reference":
        source[0] = REFERENCE["completed"](source[0])


def mathml(tex, block):
    """Return a formula as MathML; an equation number stands to its right."""
    tex = re.sub(r"\\tag\{(.*?)\}", r"\\qquad\\text{(\1)}", tex).replace(r"\dots", r"\ldots")
    return tex2mathml(tex.strip(), as_block=block)


def visit_math(self, node):
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_math_block(self, node):
    self.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("builder-inited", write_notebooks)
    app.connect("source-read", link_notebook)
    app.connect("source-read", complete_reference)
    app.connect("builder-inited", draw_gallery)
    app.connect("autodoc-process-docstring", add_returns, priority=100)  # before numpydoc
    app.connect("autodoc-process-docstring", escape_bars)
