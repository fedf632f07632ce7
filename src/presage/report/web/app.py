"""The routes of the web view. The server makes every page from its address alone, so that links can be shared. A live
page has a stream of server-sent events with the sections that have changed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from presage.core.errors import PresageError
from presage.core.text import printable
from presage.report import compare_page, corpus_page, decisions, evaluate_page, kernel_page, page, run_page, runs_page
from presage.report.html import tag
from presage.report.page import Links, Page, Section
from presage.report.web.following import Runs, Signature
from presage.report.web.guard import App, guarded

_ASSETS = {"presage.css": "text/css", "presage.js": "text/javascript", "icon.svg": "image/svg+xml"}
_PAUSE = 0.5
"""The least seconds between two checks of a run that is followed."""
_SHARE = 0.02
"""The largest share of time that is spent on updating a page, so that a search is not slowed down."""
_HEARTBEAT = 15.0
_FEW = 500
"""The number of rows in a page of JSON."""

Build = Callable[[], Page]
Version = Callable[[], Signature]


def app(folder: Path, names: frozenset[str] = frozenset(), is_ending: Callable[[], bool] = lambda: False) -> App:
    """Return the web view of a folder. `names` are further host names that requests may use. `is_ending` returns
    whether the server is shutting down; streams then end."""
    view = _View(folder, is_ending)
    routes = [
        Route("/", view.page(view.runs, live=True)),
        Route("/runs/{run}", view.page(view.run, live=True)),
        Route("/runs/{run}/kernels/{hash}", view.page(view.kernel, live=True)),
        Route("/compare", view.page(view.compare, live=True)),
        Route("/corpus", view.page(view.corpus)),
        Route("/corpus/{recording}", view.page(view.recording)),
        Route("/corpus/{recording}/{problem}", view.page(view.operation)),
        Route("/evaluations", view.page(view.evaluations)),
        Route("/evaluations/{name}", view.page(view.evaluation)),
        Route("/live/", view.stream(view.runs)),
        Route("/live/runs/{run}", view.stream(view.run)),
        Route("/live/runs/{run}/kernels/{hash}", view.stream(view.kernel)),
        Route("/live/compare", view.stream(view.compare)),
        Route("/api/runs", view.json(view.runs_json)),
        Route("/api/runs/{run}", view.json(view.run_json)),
        Route("/api/runs/{run}/kernels", view.json(view.kernels_json)),
        Route("/api/runs/{run}/kernels/{hash}", view.json(view.kernel_json)),
        Route("/assets/{name}", _asset),
        Route("/{rest:path}", _nothing),
    ]
    return guarded(Starlette(routes=routes), names)


class _View:
    """The handlers of all routes. A page's handler returns two functions: one returns the page's version, which changes
    whenever the page may have changed, and one builds the page."""

    def __init__(self, folder: Path, is_ending: Callable[[], bool]) -> None:
        self._runs = Runs(folder)
        self._folder, self._is_ending = folder, is_ending
        self._corpus = corpus_page.Corpus()

    # -- pages --------------------------------------------------------------------------------------------------------

    def runs(self, request: Request) -> tuple[Version, Build]:
        query = runs_page.Query.of(request.query_params)
        return self._runs.version, lambda: runs_page.build(self._runs.summaries(), str(self._folder), query)

    def run(self, request: Request) -> tuple[Version, Build]:
        followed, query = self._runs.get(request.path_params["run"]), decisions.Query.of(request.query_params)

        def build() -> Page:
            with followed.reading() as (view, standing, _):
                return run_page.build(view, standing, Links(request.path_params["run"]), query)

        return followed.version, build

    def kernel(self, request: Request) -> tuple[Version, Build]:
        name, hash = request.path_params["run"], request.path_params["hash"]
        followed = self._runs.get(name)

        def build() -> Page:
            with followed.reading() as (view, _, store):
                return kernel_page.build(view, store, hash, Links(name))

        return followed.version, build

    def compare(self, request: Request) -> tuple[Version, Build]:
        names = list(dict.fromkeys(request.query_params.getlist("run")))[: compare_page.MOST]
        followed = [self._runs.get(name) for name in names]

        def build() -> Page:
            compared = []
            for each in followed:
                with each.reading() as (view, standing, _):
                    compared.append(compare_page.Compared.of(view, standing))
            return compare_page.build(compared, [run.name for run in self._runs.summaries() if not run.error])

        return lambda: tuple(each.version() for each in followed), build

    def corpus(self, request: Request) -> tuple[Version, Build]:
        return tuple, lambda: corpus_page.recordings(self._corpus)

    def recording(self, request: Request) -> tuple[Version, Build]:
        query = corpus_page.Query.of(request.query_params)
        return tuple, lambda: corpus_page.recording(self._corpus, request.path_params["recording"], query)

    def operation(self, request: Request) -> tuple[Version, Build]:
        name, problem = request.path_params["recording"], request.path_params["problem"]
        return tuple, lambda: corpus_page.operation(self._corpus, name, problem)

    def evaluations(self, request: Request) -> tuple[Version, Build]:
        return tuple, lambda: evaluate_page.listed(evaluate_page.saved(self._folder))

    def evaluation(self, request: Request) -> tuple[Version, Build]:
        return tuple, lambda: evaluate_page.shown(evaluate_page.saved(self._folder), request.path_params["name"])

    # -- JSON ---------------------------------------------------------------------------------------------------------

    def runs_json(self, request: Request) -> Mapping[str, Any]:
        found = runs_page.chosen(self._runs.summaries(), runs_page.Query.of(request.query_params))
        return {"runs": [runs_page.to_json(run) for run in found]}

    def run_json(self, request: Request) -> Mapping[str, Any]:
        with self._runs.get(request.path_params["run"]).reading() as (view, standing, _):
            return run_page.to_json(view, standing)

    def kernels_json(self, request: Request) -> Mapping[str, Any]:
        query = decisions.Query.of(request.query_params)
        with self._runs.get(request.path_params["run"]).reading() as (view, _, _):
            found = decisions.rows(view, query)
            few = found[(query.page - 1) * _FEW : query.page * _FEW]
            return {"of": len(found), "page": query.page, "kernels": [kernel_page.to_json(view, seen) for seen in few]}

    def kernel_json(self, request: Request) -> Mapping[str, Any]:
        with self._runs.get(request.path_params["run"]).reading() as (view, _, store):
            seen = kernel_page.find(view, request.path_params["hash"])
            return {**kernel_page.to_json(view, seen), "source": store.kernel(seen.hash).source}

    # -- answers ------------------------------------------------------------------------------------------------------

    def page(self, find: Callable[[Request], tuple[Version, Build]], live: bool = False) -> Callable[..., Any]:
        """Return a route handler that answers with the page."""

        async def answer(request: Request) -> Response:
            stream = f"/live{request.url.path}" + (f"?{request.url.query}" if request.url.query else "")

            def made() -> Response:
                try:
                    return HTMLResponse(page.live(find(request)[1](), stream if live else None))
                except PresageError as error:
                    return _mistake(str(error))

            return await run_in_threadpool(made)

        return answer

    def stream(self, find: Callable[[Request], tuple[Version, Build]]) -> Callable[..., Any]:
        """Return a route handler that streams the page's sections, each whenever it has changed."""

        async def answer(request: Request) -> Response:
            try:
                version, build = await run_in_threadpool(find, request)
            except PresageError as error:
                return JSONResponse({"error": str(error)}, 404)
            news = _news(request, version, build, self._is_ending)
            return StreamingResponse(news, media_type="text/event-stream")

        return answer

    def json(self, make: Callable[[Request], Mapping[str, Any]]) -> Callable[..., Any]:
        async def answer(request: Request) -> Response:
            try:
                return JSONResponse(_finite(await run_in_threadpool(make, request)))
            except PresageError as error:
                return JSONResponse({"error": str(error)}, 404)

        return answer


async def _news(request: Request, version: Version, build: Build, is_ending: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield changed sections as server-sent events. End when the client disconnects, the server stops or the page fails
    to build."""
    sent: dict[str, bytes] = {}
    known: object = None
    heard = time.monotonic()
    yield "retry: 2000\n\n"
    while not (is_ending() or await request.is_disconnected()):
        start = time.monotonic()
        now = await run_in_threadpool(version)
        if now != known:
            known = now
            try:
                found = await run_in_threadpool(build)
            except PresageError:
                yield "event: gone\ndata: {}\n\n"
                return
            for each in found.sections:
                if message := _changed(each, sent):
                    heard = time.monotonic()
                    yield message
        if time.monotonic() - heard > _HEARTBEAT:
            heard = time.monotonic()
            yield ": still here\n\n"
        wake = time.monotonic() + max(_PAUSE, (time.monotonic() - start) / _SHARE)
        while (left := wake - time.monotonic()) > 0 and not is_ending():
            await asyncio.sleep(min(left, _PAUSE))


def _changed(section: Section, sent: dict[str, bytes]) -> str | None:
    """Return the event for a section, or None if it has not changed since it was sent. `sent` has the digests."""
    text = printable(page.section(section))
    digest = hashlib.sha256(text.encode(errors="backslashreplace")).digest()
    if sent.get(section.id) == digest:
        return None
    sent[section.id] = digest
    return f"event: section\ndata: {json.dumps({'id': section.id, 'html': text})}\n\n"


def _mistake(why: str) -> Response:
    found = Page("Not found", [Section("answer", "", tag("p", f"{why[:1].upper()}{why[1:]}."))])
    return HTMLResponse(page.live(found, None), 404)


async def _nothing(request: Request) -> Response:
    return _mistake("there is no page at this address")


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        return _mistake("there is no such file")
    return FileResponse(page.ASSETS / name, media_type=_ASSETS[name])


def _finite(value: Any) -> Any:
    """Replace numbers that JSON cannot represent (NaN, inf) by None."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value
