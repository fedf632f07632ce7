"""Macro-actions: condense a history into a few lines for the agent. Each line keeps its entries as evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from presage_gui.action import POINTING, Kind
from presage_gui.changes import loop_of_no_effect, same
from presage_gui.history import Effect, Entry


@dataclass(frozen=True)
class Macro:
    """One or more consecutive steps that the agent is shown as one."""

    words: str
    effect: Effect
    first: int
    """The index of the first entry in the history, from 0."""
    entries: tuple[Entry, ...]
    """The history entries: the screens before and after each step, and where they differ."""

    @property
    def line(self) -> str:
        last = self.first + len(self.entries) - 1
        steps = f"{self.first + 1}" if last == self.first else f"{self.first + 1}–{last + 1}"
        came = {
            Effect.NOTHING: "nothing changed",
            Effect.EXPECTED: self.entries[-1].note or "the screen changed as expected",
            Effect.OTHER: f"something else than expected: {self.entries[-1].note}",
        }
        return f"{steps}. {self.words} → {came[self.effect]}"


def fold(history: Sequence[Entry]) -> list[Macro]:
    """Condense a history into macro-actions.

    Joined are a click into a field and the typing after it, repetitions of a step, and consecutive scrolls."""
    macros: list[Macro] = []
    for number, entry in enumerate(history):
        if macros and (joined := _joined(macros[-1], entry)):
            macros[-1] = joined
        else:
            macros.append(Macro(entry.step.words, entry.effect, number, (entry,)))
    return macros


def told(history: Sequence[Entry]) -> str:
    """Return the history as text for an agent, one line per macro-action. Repetition without effect is pointed out.

    >>> told([])
    'Nothing has been done yet.'
    """
    if not history:
        return "Nothing has been done yet."
    lines = [macro.line for macro in fold(history)]
    if times := loop_of_no_effect(history):
        lines.append(f"The last step was carried out {times} times and had no effect: do something else.")
    return "\n".join(lines)


def _joined(macro: Macro, entry: Entry) -> Macro | None:
    last = macro.entries[-1]
    entries = (*macro.entries, entry)
    if same(last.step.action, entry.step.action) and last.effect is entry.effect:
        words = f"{entry.step.words}, {len(entries)} times"
        return Macro(words, entry.effect, macro.first, entries)
    into_field = last.step.action.kind in POINTING or last.step.action.keys == ("ctrl", "a")
    if into_field and entry.step.action.kind is Kind.TYPE and last.effect is not Effect.OTHER:
        place = macro.entries[0].step
        words = f"typed {entry.step.action.text!r} after: {place.intent or place.action.words}"
        return Macro(words, entry.effect, macro.first, entries)
    if last.step.action.kind is entry.step.action.kind is Kind.SCROLL and last.effect is entry.effect:
        return Macro(f"scrolled {len(entries)} times, last: {entry.step.words}", entry.effect, macro.first, entries)
    return None
