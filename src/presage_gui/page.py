"""The HTML page of an episode: screens, marked actions, verdicts and the history, in one self-contained file."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

from presage import PresageError
from presage.core.files import write_whole
from presage_gui.episode import Proposal, State, history_of, read_events, read_screen
from presage_gui.history import Entry
from presage_gui.macros import told
from presage_gui.marking import boxed, marked
from presage_gui.screen import Screen

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1c2024; --faint: #667; --rule: #d6dae0;
  --good: #15803d; --bad: #b91c1c; --ask: #a16207; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --text: #e4e7ea; --faint: #9aa3ad; --rule: #353b42;
  --good: #5dd486; --bad: #ff8a8a; --ask: #eac54f; } }
body { background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, sans-serif; max-width: 1100px;
  margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-top: 1px solid var(--rule); padding-top: 1rem; }
.row { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; } figure { margin: 0; max-width: 100%; }
img { max-width: 100%; border: 1px solid var(--rule); } figcaption, .note { color: var(--faint); }
.trust { color: var(--good); } .revise { color: var(--bad); } .ask { color: var(--ask); }
.verdict { flex: 1; min-width: 260px; } pre { white-space: pre-wrap; }
"""
_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_page(folder: Path) -> Path:
    """Write the page of an episode into its folder and return its path. Raises PresageError if there is no episode."""
    events = read_events(folder)
    if not events:
        raise PresageError(f"there is no episode in {folder}")
    state = State()
    for event in events:
        state.fold(event)
    file = folder / "episode.html"
    write_whole(file, _document(folder, state))
    return file


def _document(folder: Path, state: State) -> str:
    entries = list(history_of(folder, state.dispatched))
    proposals = list(state.proposals)
    parts = []
    for number, entry in enumerate(entries, 1):
        before = []
        while proposals:
            before.append(proposals.pop(0))
            if (
                before[-1].step == entry.step
                and before[-1].screen == entry.before.digest
                and (not proposals or proposals[0].screen != entry.before.digest)
            ):
                break
        parts.append(f"<section><h2>Step {number}</h2>{_proposed(folder, before)}{_came(entry)}</section>")
    if proposals:
        parts.append(f"<section><h2>Not carried out</h2>{_proposed(folder, proposals)}</section>")
    ended = state.ended or {"success": False, "reason": "it is not finished"}
    summary = f"{'Success' if ended['success'] else 'No success'}: {ended['reason']}."
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">'
        f"<title>Episode</title><style>{_STYLE}</style></head><body><h1>{escape(state.goal)}</h1>"
        f'<p class="note">{escape(summary)}</p><pre>{escape(told(entries))}</pre>'
        f"<main>{''.join(parts)}</main></body></html>\n"
    )


def _proposed(folder: Path, proposals: list[Proposal]) -> str:
    return "".join(_proposal(folder, each) for each in proposals)


def _proposal(folder: Path, proposal: Proposal) -> str:
    screen = read_screen(folder, proposal.screen)
    words = proposal.step.words if proposal.step else "an action that cannot be read"
    picture = _picture(marked(screen, proposal.step.action) if proposal.step else screen, words)
    verdict = proposal.verdict
    lines = [
        f'<b class="{proposal.choice}">{proposal.choice}</b>: {escape(proposal.reason)}',
        f"right with probability {verdict.probability:.2f}" if not verdict.abstains else "the critic cannot judge it",
    ]
    if verdict.error or verdict.explanation:
        named = f"{verdict.error.value.replace('_', ' ')}: " if verdict.error else ""
        lines.append(escape(f"{named}{verdict.explanation}"))
    if verdict.fix:
        lines.append(f"the critic would: {escape(verdict.fix.words)}")
    lines.append(f'<span class="note">{proposal.seconds:.2f} s</span>')
    return f'<div class="row">{picture}<div class="verdict">{"<br>".join(lines)}</div></div>'


def _came(entry: Entry) -> str:
    picture = _picture(boxed(entry.after, entry.changed), "after it, with what changed")
    return f'<div class="row">{picture}<div class="verdict">{escape(entry.note)}</div></div>'


def _picture(screen: Screen, words: str) -> str:
    data = base64.b64encode(screen.png).decode()
    image = f'<img alt="{escape(words)}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}<figcaption>{escape(words)}</figcaption></figure>"
