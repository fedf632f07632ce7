"""Status: the outcome of measuring a kernel."""

from __future__ import annotations

import enum


class Status(enum.StrEnum):
    OK = "ok"
    COMPILE_ERROR = "compile_error"
    WRONG_RESULT = "wrong_result"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    CHEATING = "cheating"
    DEVICE_FAULT = "device_fault"
