"""MiniWoB++: small tasks on web pages, from files of the `miniwob` wheel; no network.

The tree of the page is for the outcome, and for oracles (`presage_gui.oracles`); the screen is all that others see.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage import PresageError
from presage.core.errors import hint, install
from presage_gui.action import Action
from presage_gui.environment import Environment, Outcome
from presage_gui.environments.browser import Browser
from presage_gui.screen import Screen

if TYPE_CHECKING:
    from presage_gui.oracles.oracle import Oracle

VIEWPORT = (500, 320)
SIZE = (320, 320)
"""What is seen: tasks are 160 × 210 pixels, some dialogs reach further."""
ENOUGH = 0.6
"""The reward of a success; some tasks give a part of it for coming near."""
_LONG = 100_000_000
"""Milliseconds: an agent may take its time."""
_START = """([seed, longest]) => {
  const style = document.createElement('style');
  style.textContent = '#reward-display, #click-canvas { display: none !important } * { caret-animation: manual }';
  document.head.appendChild(style);
  core.EPISODE_MAX_TIME = longest;
  if (!core.cover_div) core.startEpisode();
  core.cover_div.classList.add('transparent');
  // What pages keep to themselves and oracles need.
  if (window.shapes) {
    const [render, matches] = [shapes.renderGrid, shapes.shapeMatchesText];
    shapes.renderGrid = (svg, grid) => { window.presageGrid = grid; return render(svg, grid) };
    shapes.shapeMatchesText = (shape, text) => { window.presageDesc = text; return matches(shape, text) };
  }
  for (const name of ['bindClickEvents', 'bindClickEvent']) {
    const bind = window[name];
    if (bind) window[name] = function (...given) { window.presageArguments = given; return bind.apply(this, given) };
  }
  Math.seedrandom(seed);
  core.startEpisodeReal();
  if (document.activeElement) document.activeElement.blur();
}"""


def folder() -> Path:
    """Where the pages are. Raises PresageError where the wheel is missing."""
    found = importlib.util.find_spec("miniwob")
    if found is None or found.origin is None:
        raise PresageError(f"MiniWoB++ is missing: {install('gui')}")
    return Path(found.origin).parent / "html" / "miniwob"


def tasks() -> list[str]:
    return sorted(file.stem for file in folder().glob("*.html"))


class MiniWob(Environment):
    """One task by its name, such as click-test."""

    def __init__(self, task: str) -> None:
        if not (folder() / f"{task}.html").is_file():
            raise PresageError(f"MiniWoB++ has no task '{task}'; {hint(task, tasks(), 'see miniwob.farama.org')}")
        self.task = task
        self._browser = Browser(*VIEWPORT, clip=SIZE)

    @property
    def page(self) -> Any:
        """For oracles only."""
        return self._browser.page

    def guide(self) -> Oracle:
        """What a scripted agent follows."""
        from presage_gui.oracles.oracle import Oracle

        return Oracle(self)

    def switch(self, task: str) -> None:
        """Another task in the same browser, from the next reset on."""
        self.task = task

    def reset(self, seed: int) -> str:
        page = self._browser.page
        page.mouse.move(0, 0)
        page.goto((folder() / f"{self.task}.html").as_uri())
        page.evaluate(_START, [str(seed), _LONG])
        page.wait_for_function("typeof WOB_TASK_READY === 'undefined' || WOB_TASK_READY")
        page.evaluate("document.activeElement && document.activeElement.blur()")
        self._browser.settle()
        self.goal = page.evaluate("(said => said.utterance ?? said)(core.getUtterance())")
        return self.goal

    def screen(self) -> Screen:
        return self._browser.screen()

    def do(self, action: Action) -> None:
        self._browser.do(action)

    def outcome(self) -> Outcome:
        over, reward, reason = self._browser.page.evaluate(
            "[WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON]"
        )
        return Outcome(bool(over), bool(over) and reward >= ENOUGH, str(reason or ""))

    def close(self) -> None:
        self._browser.close()
