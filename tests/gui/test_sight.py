"""What is seen on a screen: text with its places, boxes, elements, the focus."""

from __future__ import annotations

import pytest
from drawing import FIELD, GOAL, SUBMIT, form

from presage_gui import Screen
from presage_gui.sight import text
from presage_gui.sight.boxes import ring
from presage_gui.sight.scene import Viewer
from presage_gui.sight.text import Reader


def test_lines_are_read_where_they_are() -> None:
    lines = Reader().read(form(more={(10, 200): "hello world"}))
    found = {line.text: line.box for line in lines}
    assert {"Submit", "Cancel", "hello world"} <= set(found)
    assert SUBMIT.holds(*found["Submit"].middle)
    words = next(line for line in lines if line.text == "hello world").words
    assert [word.text for word in words] == ["hello", "world"]
    assert words[0].box.right <= words[1].box.left + 4


def test_what_did_not_change_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader()
    first = reader.read(form())
    asked: list[object] = []
    read = text._read
    monkeypatch.setattr(text, "_read", lambda crop: asked.append(crop) or read(crop))
    assert reader.read(form()) == first
    assert asked == []
    again = reader.read(form(more={(10, 250): "new"}))
    assert "new" in [line.text for line in again]
    assert len(asked) <= 2


def test_a_scene_has_named_elements() -> None:
    scene = Viewer().look(form(), GOAL)
    submit = scene.element_at(*SUBMIT.middle)
    field = scene.element_at(*FIELD.middle)
    assert submit is not None
    assert (submit.name, submit.kind) == ("Submit", "button")
    assert field is not None
    assert field.kind == "field"
    assert scene.element_at(300, 300) is None
    assert scene.find("submit")[0].area.holds(*SUBMIT.middle)


def test_the_focus_is_seen() -> None:
    assert ring(form(focused=True).pixels, FIELD) > 0.5
    assert ring(form().pixels, FIELD) < 0.5


def test_text_of_the_goal_is_no_element() -> None:
    screen = form(more={(10, 20): "Enter Jerald into the text", (10, 38): "field and press Submit."})
    scene = Viewer().look(screen, "Enter Jerald into the text field and press Submit.")
    assert len(scene.banner) == 2
    assert scene.find("submit")[0].area.holds(*SUBMIT.middle)


@pytest.mark.parametrize("size", [(1, 1), (3, 200), (40, 40)])
def test_any_screen_can_be_looked_at(size: tuple[int, int]) -> None:
    import numpy as np

    noise = np.random.default_rng(0).integers(0, 255, (*size, 3)).astype(np.uint8)
    for pixels in (noise, np.zeros((*size, 3), np.uint8)):
        scene = Viewer().look(Screen(pixels), "any goal")
        assert not scene.find("submit")
