"""The web view in a real Chromium: every page on a run that goes on, and on a run full of hostile words."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sweeps import others_in_sweeps

from presage.report import frozen, page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]

expect = sync_api.expect
expect.set_options(timeout=60_000)
Served = tuple[Path, str]
HOSTILE = (
    '"><img src=x onerror=alert(1)></script></style><script>alert(2)</script><svg onload=alert(3)>'
    "<a href='javascript:alert(4)'>x</a>${alert(5)}{{alert(6)}}<iframe srcdoc='<script>alert(7)</script>'></iframe>"
    " \u202e\u2066 \x1b[31m --> ]]> '\" onmouseover=alert(8) <base href=//evil.example><style>*{display:none}</style>"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


class Watched:
    """A page of the browser, and everything that it must not do."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.wrong: list[str] = []
        self.page = self.context.new_page()
        self.page.on("dialog", lambda dialog: (self.wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error {error}"))
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.add_init_script(
            "addEventListener('securitypolicyviolation', e => console.error('violation', e.violatedDirective));"
        )

    def _asked(self, url: str) -> None:
        if not re.match(r"http://127\.0\.0\.1:|file:///", url):
            self.wrong.append(f"request of {url}")

    def is_too_wide(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    found = Watched(browser, viewport={"width": 1280, "height": 900})
    yield found
    found.context.close()
    assert found.wrong == []


def all_pages(run: Any) -> list[str]:
    kernels = [f"/runs/run/kernels/{hash}" for hash in run.hashes[:5]]
    return ["/", "/runs/run", *kernels, "/compare?run=run&run=other", "/evaluations", "/runs/run?q=%22%3E%3Cscript%3E"]


def test_nothing_in_a_run_becomes_code(served: Served, writer: Any, watched: Watched) -> None:
    folder, address = served
    for name in ("other", "run"):
        run = writer(folder / name, HOSTILE)
        run.step()
        run.step()
    (folder / "an-evaluation.json").write_text('{"recording": "<img src=x onerror=alert(9)>"')
    for path in all_pages(run):
        watched.page.goto(address + path)
        text = watched.page.inner_text("body")
        if "/runs/run" in path:
            assert "<script>alert(2)</script>" in text
        assert not re.search("[\u202e\u2066\x1b]", text)
        found = watched.page.evaluate(
            "[...document.querySelectorAll('script, img, iframe, base, style, [onerror], [onload], [onmouseover]')]"
            ".filter(each => !(each.src || '').endsWith('/assets/presage.js')).length"
        )
        assert found == 0
    watched.page.goto(f"{address}/runs/run")
    run.step()  # what comes by the stream is put into the page by a script
    expect(watched.page.locator("#decisions")).to_contain_text("N=12")
    file = frozen.write(folder / "run")
    watched.page.goto(file.as_uri())
    assert "<script>alert(2)</script>" in watched.page.inner_text("body")
    assert watched.page.evaluate("getComputedStyle(document.querySelector('.headline')).fontWeight") == "650"


def test_a_live_run_keeps_scroll_focus_and_what_was_opened(served: Served, writer: Any, watched: Watched) -> None:
    folder, address = served
    tab = watched.page
    tab.goto(address)
    expect(tab.locator("#connection")).to_have_text("Live")
    assert "There is no run" in tab.inner_text("main")
    run = writer(folder / "run")
    tab.locator("tbody").get_by_role("link", name="run", exact=True).click()
    for _ in range(4):
        run.step()
    expect(tab.locator(".headline")).to_contain_text("2.46×")
    tab.locator("#progress summary").first.click()
    tab.locator("#decisions input[type=search]").fill("half typed")
    row = tab.locator("#decisions tr[data-key] a").nth(3)
    name = row.inner_text()
    row.focus()
    tab.evaluate("scrollTo(0, 1200)")
    before = tab.evaluate("scrollY")
    run.step()
    expect(tab.locator("#decisions")).to_contain_text("N=20")
    assert tab.evaluate("document.activeElement.innerText") == name
    assert tab.evaluate("scrollY") == before
    assert tab.locator("#progress details").first.get_attribute("open") is not None
    assert tab.input_value("#decisions input[type=search]") == "half typed"
    assert tab.get_attribute(".headline", "aria-live") == "polite"
    run.close()


def test_tables_and_the_tree_are_used_with_the_keyboard(served: Served, writer: Any, watched: Watched) -> None:
    folder, address = served
    run = writer(folder / "run")
    for _ in range(15):
        run.step()
    run.close()
    tab = watched.page
    tab.goto(f"{address}/runs/run")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.innerText") == "Skip to the content"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    first = tab.locator("ul.tree a").first
    first.focus()
    tab.keyboard.press("ArrowRight")
    child = tab.evaluate("document.activeElement.innerText")
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate("document.activeElement.innerText") != child
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate("document.activeElement.innerText") == first.inner_text()
    tab.locator("#decisions th a", has_text="measured").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/runs/run?sort=measured**")
    assert tab.locator("#decisions th[aria-sort]").inner_text().startswith("measured")
    tab.get_by_label("Show").select_option("trust")
    tab.wait_for_url("**show=trust**")
    assert set(tab.locator("#decisions td[data-label=decision]").all_inner_texts()) == {"trust"}
    tab.go_back()
    expect(tab.locator("#decisions")).to_contain_text("60 kernels")
    tab.get_by_role("link", name="Next").click()
    tab.wait_for_url("**page=2**")
    assert "page 2 of 2" in tab.inner_text("#decisions")
    boxes = tab.locator("[role=region]").all()
    assert boxes
    assert all(box.get_attribute("tabindex") == "0" and box.get_attribute("aria-label") for box in boxes)


WINDOWS = {"a telephone": (400, "dark"), "a laptop": (1280, "light"), "a large screen": (2560, "light")}


@pytest.mark.parametrize(("width", "scheme"), others_in_sweeps(WINDOWS, "a telephone"))
def test_no_page_is_wider_than_the_window(served: Served, writer: Any, browser: Any, width: int, scheme: str) -> None:
    folder, address = served
    for name in ("other", "run"):
        run = writer(folder / name, words="a_very_long_name_without_any_space_" * 8)
        run.step()
        run.close()
    watched = Watched(browser, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for path in [*all_pages(run), frozen.write(folder / "run").as_uri()]:
        watched.page.goto(path if path.startswith("file:") else address + path)
        assert not watched.is_too_wide(), path
    ground = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    watched.context.close()
    assert watched.wrong == []


def test_text_can_be_told_from_its_ground() -> None:
    """Contrast of 4.5 or more, in both colour schemes."""
    style = (page.ASSETS / "presage.css").read_text()
    schemes = [dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{3,6});", part)) for part in style.split("@media")[:2]]
    texts = ("text", "faint", "link", "good", "bad", "warm", "keyword", "string", "number", "comment", "name")
    for colours in schemes:
        for text in texts:
            for ground in ("ground", "panel"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground, colours[text])
        assert contrast(colours["text"], colours["added"]) >= 4.5
        assert contrast(colours["text"], colours["removed"]) >= 4.5
        assert all(contrast(colours[f"c{number}"], colours["ground"]) >= 3 for number in range(6))


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
