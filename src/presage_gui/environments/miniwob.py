"""The MiniWoB++ environment: small tasks on web pages, read from files of the `miniwob` wheel, without network.

Only the outcome and the oracles (`presage_gui.oracles`) read the page's DOM. Agents and critics see only the screen.
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
"""The visible part of the page. Tasks are 160 × 210 pixels; some dialogs are larger."""
ENOUGH = 0.6
"""The least reward of a success. Some tasks give a partial reward for a near miss."""
_LONG = 100_000_000
"""The time limit of an episode in milliseconds, so long that it is never reached."""
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
    """Return the folder of the pages. Raises PresageError if the wheel is not installed."""
    found = importlib.util.find_spec("miniwob")
    if found is None or found.origin is None:
        raise PresageError(f"MiniWoB++ is missing: {install('gui')}")
    return Path(found.origin).parent / "html" / "miniwob"


def tasks() -> list[str]:
    return sorted(file.stem for file in folder().glob("*.html"))


class MiniWob(Environment):
    """Runs one task, given by its name, such as click-test."""

    def __init__(self, task: str) -> None:
        if not (folder() / f"{task}.html").is_file():
            raise PresageError(f"MiniWoB++ has no task '{task}'; {hint(task, tasks(), 'see miniwob.farama.org')}")
        self.task = task
        self._browser = Browser(*VIEWPORT, clip=SIZE)

    @property
    def page(self) -> Any:
        """The Playwright page, for oracles only."""
        return self._browser.page

    def guide(self) -> Oracle:
        """Return the oracle for scripted agents."""
        from presage_gui.oracles.oracle import Oracle

        return Oracle(self)

    def switch(self, task: str) -> None:
        """Switch to another task in the same browser. It takes effect at the next reset."""
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
