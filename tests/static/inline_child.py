"""Runs a module with inline CUDA in the compiling child's sandbox, for the tests, and answers what it launched."""

import json
import os
import struct
from pathlib import Path

DEVICE = {
    "name": "H200",
    "multiprocessors": 132,
    "shared_per_block": 227 << 10,
    "shared_per_sm": 228 << 10,
    "threads_per_sm": 2048,
    "memory": 1 << 37,
    "l2": 50 << 20,
}


class Recorder:
    """Writes down what it is told."""

    def __init__(self):
        self.events = []
        self.codes = {}

    def launch(self, code, name, how, parameters):
        assert code.cubin[:4] == b"\x7fELF"
        assert f".entry {name}(" in code.ptx
        self.codes[name] = code
        values = [part.hex() for part in parameters]
        together = {key: getattr(how, key) for key in ("cluster", "cooperative", "overlapping")}
        self.events.append(["launch", name, how.grid, how.block, how.shared, values, how.stream, together])

    def copy(self, kind, destination, source, size):
        self.events.append(["copy", kind, destination, source, size])

    def to_variable(self, unit, name, offset, source, size, stream):
        self.events.append(["variable", name, offset, source, size, stream])

    def fill(self, address, value, size):
        self.events.append(["fill", address, value, size])

    def sync(self, what):
        self.events.append(["sync", what])


def answer(settings, gate):
    (writer,) = settings["descriptors"]
    gate.close()
    found = _run(json.loads(Path("request.json").read_text()))
    with os.fdopen(writer, "w") as pipe:
        json.dump(found, pipe)
    os._exit(0)


def _run(request):
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from presage.static import inline_cuda
    from presage.static.tracing import host_code, pretended_gpu
    from presage.static.tracing import recorder as tracing
    from presage.static.tracing.triton_driver import RecordingDriver

    recorder, about = Recorder(), {"capability": [9, 0], "device": DEVICE}
    silent = tracing.Recorder(has_gpu=False)
    pretended_gpu.pretend(about, silent, RecordingDriver(about, silent))
    inline_cuda.install(recorder, target_arch="sm_90a", has_gpu=False)
    out = {"error": None}
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), pretended_gpu.WithoutGpu():
            inputs = [torch.empty(n, dtype=getattr(torch, kind), device="cuda") for n, kind in request["inputs"]]
            out["addresses"] = [struct.pack("<Q", tensor.data_ptr()).hex() for tensor in inputs]
            result = host_code.load(request["source"]).custom_kernel(tuple(inputs))
            if isinstance(result, torch.Tensor):
                out["result"] = [list(result.shape), str(result.dtype), struct.pack("<Q", result.data_ptr()).hex()]
            else:
                out["result"] = result
    except Exception as error:
        out["error"] = f"{type(error).__name__}: {error}"
    return {**out, "events": recorder.events, "failures": inline_cuda.failures()}
