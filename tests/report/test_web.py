"""The web view over real HTTP: who may ask, what is answered, and that a run is followed while it goes on."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from presage.cli import main
from presage.store.store import Store

Served = tuple[Path, str]


def get(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(address + path, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def stream(address: str, path: str) -> Iterator[tuple[str, Any]]:
    """The events of a live page, as they come."""
    with urllib.request.urlopen(address + path, timeout=60) as answer:
        kind = ""
        for line in answer:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                kind = text.removeprefix("event: ")
            elif text.startswith("data: "):
                yield kind, json.loads(text.removeprefix("data: "))


def until(events: Iterator[tuple[str, Any]], section: str, words: str) -> str:
    """The first section of this name that has these words."""
    return next(
        told["html"] for kind, told in events if kind == "section" and told["id"] == section and words in told["html"]
    )


# -- who may ask ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", ""]
)
def test_only_those_who_name_this_machine_are_answered(served_empty: Served, host: str) -> None:
    """DNS rebinding: a page of someone else's has its own name point here."""
    status, _, text = get(served_empty[1], "/", Host=host)
    assert status == 421 or (status == 400 and not host)
    assert "Runs" not in text


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:80", "presage.localhost", "10.0.0.7"]
)
def test_addresses_and_local_names_are_answered(served_empty: Served, host: str) -> None:
    assert get(served_empty[1], "/", Host=host)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(served_empty: Served, method: str) -> None:
    assert get(served_empty[1], "/", method)[0] == 405


@pytest.mark.parametrize(
    "path", ["/", "/nowhere", "/api/runs", "/assets/presage.js", "/assets/presage.css", "/compare"]
)
def test_browsers_are_told_to_load_and_run_nothing_else(served_empty: Served, path: str) -> None:
    _, headers, _ = get(served_empty[1], path)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../../etc/passwd", "/runs/%2e%2e", "/runs/..%2fsecret", "/runs/secret", "/assets/..%2f..%2fpage.py",
        "/assets/%2fetc%2fpasswd", "/corpus/%2fetc%2fpasswd", "/corpus/..", "/evaluations/..%2fsecret", "/runs/a%00b",
        "/api/runs/..%2fsecret", "/live/runs/..%2fsecret", "/api/runs/x/kernels/y", "/evaluations/nothing",
        "/runs/" + "x" * 5000,
    ],
)  # fmt: skip
def test_addresses_lead_to_nothing_outside(served_empty: Served, path: str) -> None:
    _, address = served_empty
    host = address.removeprefix("http://")
    connection = http.client.HTTPConnection(host)  # which sends the path as it is
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status in (400, 404)
    text = answer.read().decode()
    assert "root:" not in text
    assert "def " not in text
    connection.close()


# -- what is answered -------------------------------------------------------------------------------------------------


def test_every_page_of_a_run(served: Served, writer: Any) -> None:
    folder, address = served
    run = writer(folder / "a run")
    for _ in range(3):
        run.step()
    run.close()
    status, _, text = get(address, "/runs/a%20run")
    assert status == 200
    assert text.index("the anchor&#x27;s speed") < text.index("<svg")
    links = dict.fromkeys(re.findall(r'href="(/[^"#]*)', text))
    assert any("/kernels/" in link for link in links)
    for link in links:
        if not link.startswith("/corpus"):  # which is read whole
            assert get(address, link.replace("&amp;", "&"))[0] == 200, link
    (one,) = json.loads(get(address, "/api/runs")[2])["runs"]
    assert (one["name"], one["state"], one["measured"]) == ("a run", "running", 7)
    told = json.loads(get(address, "/api/runs/a%20run")[2])
    assert told["spent"]["measurements"] == 7
    assert told["best"] == run.hashes[9]
    kernel = json.loads(get(address, f"/api/runs/a%20run/kernels/{run.hashes[9]}")[2])
    assert kernel["speedup"] == pytest.approx(2**0.9)
    assert "x[9] = 9.0f" in kernel["source"]


def test_tables_are_sorted_filtered_and_cut_into_pages(served: Served, writer: Any) -> None:
    folder, address = served
    run = writer(folder / "run")
    for _ in range(30):
        run.step()
    run.close()

    def names(query: str) -> list[int]:
        text = get(address, f"/runs/run?{query}")[2]
        table = text[text.index('<section id="decisions"') : text.index('<section id="lineage"')]
        return [int(number) for number in re.findall(r"rows\.c@N=(\d+)", table)]

    assert len(names("")) == 50
    assert max(names("")) == 120
    assert max(names("sort=time&order=up")) < 60
    assert names("sort=measured")[:30] == list(range(117, 0, -4))
    assert set(names("page=3")) | set(names("page=2")) | set(names("")) == set(range(1, 121))
    assert names("page=999") == names("page=3")
    assert {n % 4 for n in names("show=trust")} == {3}
    assert {n % 4 for n in names("show=failed")} == {2}
    assert names("q=n%3D77") == [77]
    assert names("q=" + "%22%3E%3Cimg%20src%3Dx%3E") == []
    for wrong in ("sort=nothing", "page=-1", "page=x", "page=" + "9" * 30, "show=none", "order=round"):
        assert len(names(wrong)) == 50
    sent = json.loads(get(address, "/api/runs/run/kernels?sort=forecast")[2])
    assert sent["of"] == 120
    medians = [each["forecast"]["value"] for each in sent["kernels"] if each["forecast"]]
    assert medians == sorted(medians, reverse=True)


def test_runs_are_sorted_and_filtered(served: Served, writer: Any) -> None:
    folder, address = served
    for name, steps, problem in (("one", 1, "softmax"), ("two", 3, "matmul"), ("three", 2, "softmax")):
        run = writer(folder / name, problem=problem)
        for _ in range(steps):
            run.step()
        run.close()

    def names(query: str) -> list[str]:
        return [run["name"] for run in json.loads(get(address, f"/api/runs?{query}")[2])["runs"]]

    assert names("sort=best") == ["two", "three", "one"]
    assert names("sort=best&order=up") == ["one", "three", "two"]
    assert names("sort=name&order=up&q=softmax") == ["one", "three"]
    assert names("state=finished") == []
    text = get(address, "/?sort=best&order=up")[2]
    assert 'aria-sort="ascending"' in text
    assert text.index(">one<") < text.index(">three<") < text.index(">two<")


def test_a_damaged_run_spoils_no_other(served: Served, writer: Any) -> None:
    folder, address = served
    writer(folder / "good").close()
    (folder / "bad").mkdir()
    (folder / "bad" / "run.db").write_text("nothing of ours")
    text = get(address, "/")[2]
    assert ">good<" in text
    assert "not a run of presage, or is damaged" in text
    assert get(address, "/runs/bad")[0] == 404
    assert get(address, "/runs/good")[0] == 200


# -- live -------------------------------------------------------------------------------------------------------------


def test_a_run_is_followed_while_it_goes_on(served: Served, writer: Any) -> None:
    folder, address = served
    listing = stream(address, "/live/")
    assert "There is no run" in until(listing, "runs", "no run")
    run = writer(folder / "run")  # it appears by itself
    assert ">run<" in until(listing, "runs", ">run<")
    events = stream(address, "/live/runs/run")
    assert "Nothing faster than the anchor yet" in until(events, "answer", "anchor")
    run.step()
    assert until(events, "decisions", "rows.c@N=4")
    run.step()
    answer = until(events, "answer", "1.41")
    assert answer.startswith('<section id="answer"')
    run.close()


def test_only_what_has_changed_is_sent(served: Served, writer: Any) -> None:
    folder, address = served
    run = writer(folder / "run")
    run.step()
    events = stream(address, "/live/runs/run")
    first = [next(events)[1]["id"] for _ in range(7)]
    assert first == ["answer", "budget", "progress", "forecasts", "decisions", "lineage", "settings"]
    run.store.append("looked", {"left": 3, "chance": 0.2, "quiet": 0, "doubted": []})
    assert next(events)[1]["id"] in ("answer", "budget")  # time has passed
    run.step()
    assert {told["id"] for _, told in itertools.takewhile(lambda event: event[1]["id"] != "progress", events)} <= {
        "answer",
        "budget",
    }
    run.close()


def test_a_run_that_is_removed_is_said_to_be_gone(served: Served, writer: Any) -> None:
    folder, address = served
    writer(folder / "run").close()
    events = stream(address, "/live/runs/run")
    until(events, "answer", "anchor")
    for file in (folder / "run").iterdir():
        file.unlink()
    assert next(kind for kind, _ in events if kind == "gone")


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_serves_until_it_is_stopped(tmp_path: Path, writer: Any) -> None:
    pytest.importorskip("uvicorn", reason="the extra [ui] is not installed")
    run = writer(tmp_path / "run")
    command = [sys.executable, "-P", "-m", "presage", "ui", str(tmp_path), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while "}" not in text:
            text += process.stdout.readline()
        document = json.loads(text)
        assert document["schema"] == "ui/1"
        assert ">run<" in get(document["address"].rstrip("/"), "/")[2]
        open_stream = stream(document["address"].rstrip("/"), "/live/runs/run")
        until(open_stream, "answer", "anchor")
        held = [os.readlink(file) for file in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert not [name for name in held if "/run." in name]  # a search goes on as if nobody looked
        run.close()
        Store(tmp_path / "run").close()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "presage: stopped\n"


def test_a_port_that_is_taken_is_said(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    folder, address = served
    assert main.main(["ui", str(folder), "--port", address.rpartition(":")[2]]) == 2
    assert "Address already in use; name another with --host and --port" in capsys.readouterr().err
    assert main.main(["ui", str(folder), "--host", "no such host", "--port", "0"]) == 2
    assert main.main(["ui", str(folder), "--port", "70000"]) == 2
    (folder / "file").write_text("")
    assert main.main(["ui", str(folder / "file"), "--port", "0"]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_without_the_extra_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("presage.cli.ui.find_spec", lambda name: None)
    assert main.main(["ui"]) == 2
    assert "pip install 'presage-kernels[ui]'" in capsys.readouterr().err


def test_a_folder_s_configuration_cannot_let_others_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    (tmp_path / "presage.toml").write_text('[ui]\nhost = "0.0.0.0"\n')
    assert main.main(["ui", "--port", "0"]) == 2
    assert "'host' can be set only in your own file" in capsys.readouterr().err


def test_examples_of_the_guard() -> None:
    """The web view cannot be imported without its extra, so its examples are not collected elsewhere."""
    pytest.importorskip("starlette")
    import doctest

    from presage.report.web import guard

    assert doctest.testmod(guard).failed == 0
