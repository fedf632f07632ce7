"""The endpoint and the client of tests/llm, for forecasters."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("openai", reason="needs the llm extra")

_FOLDER = Path(__file__).parents[1] / "llm"
sys.path.insert(0, str(_FOLDER))
_spec = importlib.util.spec_from_file_location("shared_llm_fixtures", _FOLDER / "conftest.py")
_shared = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_shared)

endpoint, make_client, time = _shared.endpoint, _shared.make_client, _shared.time
_no_settings_of_this_machine = _shared._no_settings_of_this_machine
