"""HTML that is safe by construction: `tag` makes the markup, and it escapes all text and every attribute value."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import quote, urlencode

_VOID = {"br", "hr", "input", "link", "meta"}
_ADDRESSES = {"href", "src", "action"}


class Html(str):
    """Markup. Any other string is text, and is escaped when it is put into markup."""

    __slots__ = ()


Content = str | Html | Iterable["Content"] | None


def tag(name: str, /, *content: Content, **attributes: str | int | float | bool | None) -> Html:
    """Return an element. In attribute names a final underscore is dropped and other underscores become hyphens.

    An attribute of None or False is left out. Names are not escaped, so they must not come from foreign text.

    >>> tag("p", "1 < 2", tag("b", "x"), class_="note", title='"')
    '<p class="note" title="&quot;">1 &lt; 2<b>x</b></p>'
    """
    told = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{told}>")
    return Html(f"<{name}{told}>{join(content)}</{name}>")


def join(content: Content) -> Html:
    """Concatenate parts: markup unchanged, text escaped."""
    if content is None:
        return Html()
    if isinstance(content, Html):
        return content
    if isinstance(content, str):
        return Html(escape(content))
    return Html("".join(join(part) for part in content))


def address(*parts: str, **query: object) -> str:
    """Return the path of one of our pages. Each part is quoted, so that it cannot add path components.

    >>> address("runs", "a/../b", q="x y")
    '/runs/a%2F..%2Fb?q=x+y'
    """
    asked = urlencode({key: value for key, value in query.items() if value not in (None, "")}, doseq=True)
    return (
        "/"
        + "/".join(quote(part, safe="", errors="surrogateescape") for part in parts)
        + (f"?{asked}" if asked else "")
    )


def _attribute(key: str, value: str | int | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = str(value)
    if name in _ADDRESSES and (not text.startswith(("/", "#", "?")) or text.startswith(("//", "/\\"))):
        raise ValueError(f"pages lead only to pages of their own, not to {text!r}")
    return f' {name}="{escape(text)}"'
