"""Notebook display of a result: verdict, at most three numbers, a small picture, and the tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Literal

from caltest.results.rendering import Content, html

#: How a verdict is shown: its colour, and a shape that says the same in grey.
Tone = Literal["bad", "good", "ask", "plain"]


#: Key numbers that are shown at most.
MOST_NUMBERS = 3


@dataclass(frozen=True)
class Card:
    """The first screen of a result in a notebook.

    Attributes
    ----------
    verdict : str
        A word or two; the kind of result where there is no verdict.
    tone : {"bad", "good", "ask", "plain"}
        Its colour and shape.
    headline : str
        The finding in a sentence.
    numbers : tuple of (str, str, str)
        Name, value and note of each; the first three are shown.
    remarks : tuple of str
        Sentences below the numbers.
    drawing : str
        Inline SVG, or "".
    """

    verdict: str
    tone: Tone = "plain"
    headline: str = ""
    numbers: tuple[tuple[str, str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    drawing: str = ""


def element(card: Card, content: Content) -> str:
    """Return a card as HTML, with the tables and sentences of the result folded."""
    numbers = "".join(
        f"<dt>{escape(name)}</dt><dd><b>{_typeset(value)}</b></dd><dd>{_typeset(note)}</dd>"
        for name, value, note in card.numbers[:MOST_NUMBERS]
    )
    say = f'<p class="say">{escape(card.headline)}</p>' if card.headline else ""
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in card.remarks)
    chip = f'<span class="chip {card.tone}">{SHAPES[card.tone]}{escape(card.verdict)}</span>'
    drawing = f'<div class="pic">{card.drawing}</div>' if card.drawing else ""
    sentences = "".join(f"<p>{escape(words)}</p>" for words in content.sentences)
    tables = "".join(f'<div class="wide">{html(table)}</div>' for table in content.tables)
    return (
        f'<div class="caltest"><style>{STYLE}</style><div class="top"><div class="left">{chip}{say}'
        f"<dl>{numbers}</dl>{remarks}</div>{drawing}</div><details><summary>All numbers</summary>"
        f'{tables}{sentences}<p class="rec">{escape(content.recipe)}</p></details></div>'
    )


def _typeset(words: str) -> str:
    """Return text as HTML, with minus signs before numbers."""
    return escape(re.sub(r"(?<![\w.])-(?=\d)", "−", words))


#: The shapes of tones: a diamond, a disc with a tick, a square with a question mark, and none.
SHAPES: dict[Tone, str] = {
    "bad": '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 1l9 9-9 9-9-9z" '
    'fill="currentColor"/></svg>',
    "good": '<svg viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="9" '
    'fill="currentColor"/><path class="cut" d="M5.5 10.5l3 3 6-7"/></svg>',
    "ask": '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M2 2h16v16h-16z" fill="none" '
    'stroke="currentColor" stroke-width="2"/><text x="10" y="15" text-anchor="middle">?</text>'
    "</svg>",
    "plain": "",
}


#: Colours with a contrast above 4.5 for words and 3 for marks, on backgrounds of their own.
LIGHT = (
    "--bg:#fff;--ink:#171b20;--mut:#565f6a;--rule:#dfe3e8;--bar:#c4cfdb;--edge:#7c8c9e;"
    "--hot:#a3201d;--line:#1f4e8c;--ok:#1c6637"
)
DARK = (
    "--bg:#14171b;--ink:#e9ebee;--mut:#a7b0bb;--rule:#343a42;--bar:#46525f;--edge:#8593a3;"
    "--hot:#ff9a8f;--line:#8db8f2;--ok:#8fd3a5"
)


#: Rules for elements within ``.caltest``. Themes of JupyterLab and VS Code go before the system's.
STYLE = f"""
.caltest{{{LIGHT};background:var(--bg);color:var(--ink);border:1px solid var(--rule);
border-radius:6px;padding:12px 16px;max-width:760px;font:14px/1.4 system-ui,sans-serif}}
@media(prefers-color-scheme:dark){{.caltest{{{DARK}}}}}
[data-jp-theme-light=true] .caltest,.vscode-light .caltest{{{LIGHT}}}
[data-jp-theme-light=false] .caltest,.vscode-dark .caltest{{{DARK}}}
.caltest .top{{display:flex;flex-wrap:wrap;gap:8px 20px;justify-content:space-between}}
.caltest .left{{flex:1 1 300px;min-width:0}}.caltest .pic{{flex:0 0 240px}}
.caltest p{{margin:6px 0;color:var(--mut)}}
.caltest p.say{{font-size:16px;font-weight:600;color:var(--ink)}}
.caltest .chip{{display:inline-flex;align-items:center;gap:7px;font-weight:700;font-size:13px;
letter-spacing:.03em;padding:3px 10px;border-radius:4px;text-transform:uppercase;
border:1.5px solid currentColor}}
.caltest .chip.bad{{color:var(--hot)}}.caltest .chip.good{{color:var(--ok)}}
.caltest .chip svg{{width:15px;height:15px}}.caltest .chip text{{font:700 13px system-ui;
fill:currentColor}}.caltest .cut{{fill:none;stroke:var(--bg);stroke-width:2}}
.caltest dl{{display:grid;grid-template-columns:max-content max-content 1fr;gap:2px 14px;
margin:8px 0;align-items:baseline}}.caltest dt{{color:var(--mut);font-weight:400}}
.caltest dd{{margin:0}}
.caltest dd b{{font-size:17px;font-variant-numeric:tabular-nums}}
.caltest dd+dd{{color:var(--mut);font-size:13px}}
.caltest summary{{cursor:pointer;color:var(--mut);font-size:13px;padding:4px 0}}
.caltest .wide{{overflow-x:auto}}
.caltest table{{border-collapse:collapse;font-size:13px;margin:6px 0;color:var(--ink);
background:none}}.caltest tr{{background:none}}
.caltest th{{font-weight:600;color:var(--mut);border-bottom:1px solid var(--mut)}}
.caltest td{{border-bottom:1px solid var(--rule)}}
.caltest td,.caltest th{{padding:3px 12px 3px 0}}
.caltest .rec{{font:12px/1.4 ui-monospace,Consolas,monospace}}
.caltest .pic svg{{display:block;max-width:100%;height:auto;font:12px system-ui,sans-serif}}
.caltest .a{{fill:var(--ink);font-weight:600}}.caltest .k{{fill:var(--mut);
paint-order:stroke;stroke:var(--bg);stroke-width:4px;stroke-linejoin:round}}
.caltest .g{{stroke:var(--rule);fill:none}}.caltest .x{{stroke:var(--mut);fill:none}}
.caltest .d{{stroke:var(--ink);stroke-dasharray:5 4;fill:none}}
.caltest .b{{fill:var(--bar);stroke:var(--edge);stroke-width:.8}}
.caltest .w{{fill:var(--bar);opacity:.6}}
.caltest .o{{fill:var(--hot);stroke:var(--bg)}}
.caltest .i{{fill:var(--bg);stroke:var(--mut);stroke-width:1.8}}
.caltest .c{{fill:none;stroke:var(--line);stroke-width:2}}
.caltest .e{{fill:none;stroke:var(--mut);stroke-width:1.6}}
.caltest .e.s{{stroke:var(--hot);stroke-width:2.4}}
.caltest .r{{stroke:var(--ink);stroke-width:2}}
@media(max-width:520px){{.caltest dl{{grid-template-columns:max-content 1fr}}
.caltest dd+dd{{grid-column:1/-1;margin-bottom:4px}}}}
"""
