"""A self-contained HTML page: one file, no script, nothing loaded from elsewhere. All text is escaped, since kernels
and answers of models come from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from presage.core.errors import PresageError
from presage.core.files import write_whole
from presage.core.text import printable

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1c2024; --faint: #667; --rule: #d6dae0; --code: #f4f6f8;
  --added: #e2f4e5; --removed: #fbe5e5; --c0: #1f6feb; --c1: #c2410c; --c2: #15803d; --c3: #9333ea; --c4: #a16207;
  --c5: #be185d; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --text: #e4e7ea; --faint: #9aa3ad; --rule: #353b42;
  --code: #1d2227; --added: #14361f; --removed: #421d20; --c0: #6cb0ff; --c1: #fb923c; --c2: #5dd486; --c3: #c79bff;
  --c4: #eac54f; --c5: #f58fbc; } }
body { background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, sans-serif; max-width: 1180px;
  margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p.note, figcaption { color: var(--faint); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1.2rem; }
figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; } svg text { fill: var(--faint); font-size: 12px; }
svg .grid { stroke: var(--rule); stroke-width: .6; } svg .axis { stroke: var(--faint); fill: none; }
svg .diagonal { stroke: var(--faint); stroke-dasharray: 2 4; } svg .line { fill: none; stroke-width: 2; }
svg .dashed { stroke-dasharray: 6 4; } svg circle { fill-opacity: .65; }
.legend { list-style: none; padding: 0; margin: 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }
pre { background: var(--code); padding: .8rem; overflow-x: auto; font-size: 13px; }
pre .added { background: var(--added); } pre .removed { background: var(--removed); }
pre .place { color: var(--faint); }
ul.tree, ul.tree ul { list-style: none; padding-left: 1.1rem; border-left: 1px solid var(--rule); margin: 0; }
.best { font-weight: 700; }
""" + "".join(
    f".c{i} {{ fill: var(--c{i}); stroke: var(--c{i}); }} .key.c{i} {{ background: var(--c{i}); }}\n" for i in range(6)
)


@dataclass(frozen=True)
class Section:
    """A heading and the HTML under it."""

    heading: str
    html: str


def page(title: str, summary: str, sections: Sequence[Section]) -> str:
    """The whole document. `summary` is plain text. Control characters are escaped."""
    body = "".join(f"<section><h2>{escape(each.heading)}</h2>{each.html}</section>" for each in sections)
    return printable(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f'<body><h1>{escape(title)}</h1><p class="note">{escape(summary)}</p><main>{body}</main></body></html>\n'
    )


def paragraph(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def figures(drawn: Sequence[str]) -> str:
    """Figures side by side, if there is room."""
    return f'<div class="figures">{"".join(drawn)}</div>'


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """A table of plain text."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def write(path: Path, document: str) -> Path:
    """Write a page, whole or not at all."""
    try:
        write_whole(path, document)
    except OSError as error:
        raise PresageError(f"cannot write {path}: {error.strerror or error}") from error
    return path
