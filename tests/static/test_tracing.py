"""Tracing modules without a GPU: every step is there, in order, with what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from presage.static import hardware, operations, roofline
from presage.static.trace import GRAPHED, KEPT, Trace, tensors_in

X = ((64, 128), "float32")


def steps(trace: Trace, *kinds: str) -> list[str]:
    return [
        step.name.removeprefix("aten::").partition(".")[0] for step in trace.steps if not kinds or step.kind in kinds
    ]


@pytest.fixture(scope="module")
def traced(inspect_sources: Any) -> Any:
    """The traces of all modules below, made together."""
    reports = inspect_sources(list(MODULES.values()), ".py", X)
    assert {name: report.error for name, report in zip(MODULES, reports, strict=True) if report.error} == {}
    return dict(zip(MODULES, reports, strict=True))


HEAD = "import torch\n"
TRITON = """
import torch, triton, triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, at < n), at < n)
"""
MODULES = {
    "as on a GPU": HEAD
    + """
from torch.nn import functional as F

def custom_kernel(data):
    x, = data
    image, ones = x.reshape(8, 4, 16, 16), torch.ones(4, device=x.device)
    y = F.batch_norm(torch.cat((image, image), 1)[:, :4], ones, ones, ones, ones, training=True)
    y = F.rms_norm(y, (16,), torch.ones(16, device=x.device), 1e-6)
    y = y + F.scaled_dot_product_attention(y, y, y)
    half = y.half()
    half = F.scaled_dot_product_attention(half, half, half, is_causal=True)
    one, seen = half[:, :1], torch.ones(16, 16, dtype=torch.bool, device=x.device)
    half = F.scaled_dot_product_attention(half, one, one, enable_gqa=True)
    half = F.scaled_dot_product_attention(half, one, one, attn_mask=seen, enable_gqa=True)
    torch.ones(4, dtype=torch.uint8, device=x.device) >> 4 << 2
    last = image.to(memory_format=torch.channels_last)
    for image in (image, last, last.double()):
        y = F.conv2d(image, torch.ones(4, 4, 1, 1, dtype=image.dtype, device=image.device))
    return F.batch_norm(half.float().mean((2, 3)), ones, ones, training=True)
""",
    "kept in a list": HEAD
    + """
import collections

class Kept(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(128, 32, bias=False)
        self.two = torch.nn.Linear(128, 32, bias=False)
        self.two.weight = self.one.weight
        self.kept, self.named = [self.one.weight], {"weight": self.one.weight}
        self.pair = collections.namedtuple("Pair", "weight bias")(self.one.weight, None)

model = Kept().cuda()

def custom_kernel(data):
    x, = data
    return x @ model.kept[0].t() + x @ model.named["weight"].t() + model.two(x) + x @ model.pair.weight.t()
""",
    "product": HEAD + "def custom_kernel(data):\n    x, = data\n    return torch.relu(x @ x.t())[:, :8].contiguous()\n",
    "mixed": TRITON
    + """
def custom_kernel(data):
    x, = data
    y = torch.empty_like(x)
    double[(64,)](x, y, x.numel(), BLOCK=128)
    return y.sum(0)
""",
    "model": HEAD
    + """
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(128, 32)
        self.rates = [x.item() for x in torch.linspace(0, 0.25, 2)]
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return self.layer(x) * self.rates[1]
""",
    "graph": HEAD
    + """
held = graph = given = None

def custom_kernel(data):
    global held, graph, given
    x, = data
    if graph is None:
        given = torch.empty_like(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            held = given.exp() + 1
    given.copy_(x)
    graph.replay()
    return held.clone()
""",
    "waits": HEAD
    + "def custom_kernel(data):\n    x, = data\n    y = x.cpu().cuda()\n    torch.cuda.synchronize()\n    return y\n",
    "settings by their new names": HEAD
    + """
def custom_kernel(data):
    x, = data
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    return x @ x.t()
""",
    "in place": HEAD
    + """
buffer = torch.zeros(64, 128, device="cuda")

def custom_kernel(data):
    x, = data
    buffer.copy_(x).mul_(2)
    return buffer.view(-1).clone()
""",
    "waits of streams and events": HEAD
    + """
def custom_kernel(data):
    x, = data
    stream, event = torch.cuda.Stream(priority=-1), torch.cuda.Event()
    event.record(stream)
    stream.synchronize()
    event.synchronize()
    return x + 1
""",
    "helpers of torch.cuda": HEAD
    + """
held, kept = torch.zeros(64).pin_memory(), torch.nn.Linear(128, 8).cuda()
torch.nn.init.trunc_normal_(torch.empty(4, 4), std=0.02)
cell, graphed = torch.nn.GRUCell(128, 8).cuda(), None

def custom_kernel(data):
    global graphed
    x, = data
    x.record_stream(torch.cuda.current_stream())
    torch.cuda.nvtx.range_push("layer")
    graphed = graphed or torch.cuda.make_graphed_callables(kept, (x,))
    with torch.cuda.device_of(x):
        y = graphed(x)[:, [2, 0]].sum()
    torch.cuda.nvtx.range_pop()
    return cell(x) + y + torch.bincount(x[0].long(), minlength=8)
""",
    "custom operator": HEAD
    + """
@torch.library.custom_op("ours::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

def custom_kernel(data):
    return torch.ops.ours.twice(data[0]) + torch.ops.ours.twice.default(data[0])
""",
    "kept from the first call": HEAD
    + """
kept = None

def custom_kernel(data):
    global kept
    if kept is None:
        kept = torch.relu(data[0])
    return kept
""",
    "changed in part": HEAD
    + """
def custom_kernel(data):
    y = data[0].clone()
    y.index_copy_(0, torch.zeros(2, dtype=torch.long, device="cuda"), y[:2])
    return y.t_()
""",
    "eighths": HEAD
    + """
def custom_kernel(data):
    x, one = data[0].to(torch.float8_e4m3fn), torch.ones(1, device="cuda")
    return torch._scaled_mm(x, x.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
""",
    "described": """
import torch, triton, triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def move(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK
    y.store([at, 0], x.load([at, 0]))

def custom_kernel(data):
    x, = data
    y = torch.empty_like(x)
    x, y_described = (TensorDescriptor.from_tensor(each, [32, 128]) for each in (x, y))
    move[(2,)](x, y_described, BLOCK=32)
    return y
""",
    "read in part": HEAD
    + """
from torch.nn import functional as F

def custom_kernel(data):
    x, = data
    places = torch.zeros(4096, dtype=torch.long, device=x.device)
    y = torch.zeros_like(x), x * x, F.embedding(places, x), F.nll_loss(x, places[:64])
    image = x.reshape(8, 4, 16, 16)
    z = F.conv2d(image, torch.ones(4, 4, 1, 1, device=x.device), stride=4)
    half = image.half()
    return *y, z, F.scaled_dot_product_attention(half, half, half[:], is_causal=True)
""",
    "recurrent": HEAD
    + """
def custom_kernel(data):
    torch.backends.cudnn.allow_tf32 = True
    x = data[0].reshape(64, 8, 16)
    options = dict(batch_first=True, bidirectional=True, device=x.device)
    both, _ = torch.nn.LSTM(16, 32, 2, **options)(x)
    narrow, _ = torch.nn.LSTM(64, 32, proj_size=4, device=x.device)(both)
    half, _ = torch.nn.GRU(4, 32, device=x.device, dtype=torch.half)(narrow.half())
    torch.backends.cudnn.allow_tf32 = False
    exact, _ = torch.nn.RNN(32, 16, device=x.device)(half.float())
    return torch.nn.LSTMCell(16, 32, device=x.device)(exact[0])
""",
    "libraries": HEAD
    + """
def custom_kernel(data):
    x, = data
    torch.backends.cuda.matmul.allow_tf32 = True
    y = torch.cdist(x, x), torch.linalg.inv(x @ x.t()), torch.nn.functional.bilinear(x, x, x.new_ones(8, 128, 128))
    torch.backends.cuda.matmul.allow_tf32 = False
    return *y, torch.cdist(x, x, p=1.0), torch.fft.rfft(x)
""",
    "half": HEAD
    + """
def custom_kernel(data):
    x, = data
    with torch.autocast("cuda", torch.float16):
        return x @ x.t()
""",
}


def test_settings_by_their_new_names_are_known(traced: Any) -> None:
    """torch refuses to tell by their old names what was set by the new ones."""
    steps = traced["settings by their new names"].trace.steps
    product = next(step for step in steps if step.name == "aten::mm.default")
    assert (product.precision, product.flags["matmul_tf32"], product.flags["cudnn_tf32"]) == ("tf32", True, False)


def test_operators_with_their_bytes_and_flops(traced: Any) -> None:
    trace = traced["product"].trace
    assert steps(trace, "operator") == ["mm", "relu", "clone"]
    assert steps(trace, "view") == ["t", "slice"] or steps(trace, "view")[:1] == ["t"]
    product = next(step for step in trace.steps if step.name == "aten::mm.default")
    assert product.flops == 2 * 64 * 64 * 128
    assert product.bytes == 4 * (64 * 128 + 128 * 64 + 64 * 64)


def test_recurrent_layers_multiply_all_their_weights_in_each_time_step(traced: Any) -> None:
    trace = traced["recurrent"].trace
    layers = [step for step in trace.steps if step.name == "aten::_cudnn_rnn.default"]
    both = 2 * (4 * 32 * (16 + 32)) + 2 * (4 * 32 * (64 + 32))  # a layer's inputs are both directions of the last
    narrow = 4 * 32 * (64 + 4) + 4 * 32
    weights = [both, narrow, 3 * 32 * (4 + 32), 16 * (32 + 16)]
    found = [operations.of_step(trace, step) for step in layers]
    assert found == [
        (2.0 * 64 * 8 * size, precision)
        for size, precision in zip(weights, ("tf32", "tf32", "fp16", "fp32"), strict=True)
    ]
    assert [step.flags.get("cudnn_tf32") for step in layers] == [None, None, None, False]
    least = roofline.step_ns(trace, hardware.find("T4"))[trace.steps.index(layers[0])]
    assert least >= 1e9 * found[0][0] / hardware.find("T4").peak_flops["fp32"]
    cell = next(step for step in trace.steps if step.name == "aten::mm.default")
    assert cell.flops == 2 * 8 * 16 * 4 * 32, "a cell's products are operators of their own"


def test_what_torch_leaves_to_libraries_has_its_operations_and_settings(traced: Any) -> None:
    trace = traced["libraries"].trace
    wanted = {
        "_euclidean_dist": (2 * 64 * 64 * 128, "tf32"),
        "linalg_inv_ex": (2 * 64**3, "tf32"),
        "_trilinear": (2 * 64 * 8 * 128 * 128, "tf32"),
        "_cdist_forward": (3 * 64 * 64 * 128, "fp32"),
        "_fft_r2c": (2.5 * 64 * 128 * 7, "fp32"),
    }
    found = {step.base_name: operations.of_step(trace, step) for step in trace.steps}
    assert {name: found[name] for name in wanted} == wanted


def test_the_roofline_counts_what_must_be_read_and_computed(traced: Any) -> None:
    trace = traced["read in part"].trace
    moved = {step.name.partition(".")[0]: roofline.moved_bytes(trace, step) for step in trace.steps}
    whole = 64 * 128 * 4
    assert moved["aten::zeros_like"] == whole
    assert moved["aten::mul"] == 2 * whole, "of two factors that are one tensor"
    assert moved["aten::embedding"] == whole + 4096 * 8 + 4096 * 128 * 4
    assert moved["aten::nll_loss_forward"] == 64 * 4 + 64 * 8 + 4 + 4
    assert moved["aten::convolution"] == whole // 4 + 4 * 4 * 4 + 8 * 4 * 4 * 4 * 4, "of every fourth row"
    attention = next(step for step in trace.steps if "flash_attention" in step.name)
    assert operations.of_step(trace, attention) == (4 * 8 * 4 * 16 * (16 * 17 / 2), "fp16")


def test_operators_are_those_that_torch_takes_on_a_gpu(traced: Any) -> None:
    trace = traced["as on a GPU"].trace
    found = steps(trace, "operator")
    assert found.index("cudnn_batch_norm") == found.index("clone") + 1, "a part of a tensor is copied first"
    fused = [name for name in found if "norm" in name or "attention" in name]
    assert fused == [
        "cudnn_batch_norm",
        "_fused_rms_norm",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention",  # of fewer keys than queries
        "_scaled_dot_product_cudnn_attention",
        "_native_batch_norm_legit",  # of no image
    ]
    assert {"__rshift__", "__lshift__"} <= {*found}
    masking = next(step for step in trace.steps if step.base_name == "where")
    assert trace.tensors[masking.results["tensor"]].shape == (16, 16), "before it stands for all heads"
    images = [trace.tensors[step.results["tensor"]] for step in trace.steps if step.base_name == "convolution"]
    assert [image.stride[1] == 1 for image in images] == [False, True, False], "cuDNN keeps channels last"


def test_launches_stand_among_the_operators(traced: Any) -> None:
    trace = traced["mixed"].trace
    assert steps(trace, "allocation", "triton", "operator") == ["empty_like", "double", "sum"]
    launch = next(step.launch for step in trace.steps if step.launch)
    assert launch.grid == (64, 1, 1)
    (source,), (target,) = (parameter.pointers for parameter in launch.parameters[:2])
    assert source[1] == trace.inputs[0]
    assert target[1] in {number for step in trace.steps[:2] for number in step.makes}
    assert int.from_bytes(launch.parameters[2].content, "little") == 64 * 128
    assert trace.cubin_hashes
    assert len(traced["mixed"].launches) == 1


def test_weights_and_buffers_are_constants(traced: Any) -> None:
    trace = traced["model"].trace
    shapes = sorted(trace.tensors[number].shape for number in trace.constants)
    assert shapes == [(1,), (32,), (32, 128)]
    scale = trace.steps[-1]
    assert scale.arguments[1] == 0.25, "small tensors of plain numbers have values"


def test_a_parameter_stays_the_same_when_it_is_moved(traced: Any) -> None:
    trace = traced["kept in a list"].trace
    assert [trace.tensors[number].shape for number in trace.constants] == [(32, 128)]
    assert steps(trace, "operator") == ["mm", "mm", "add", "mm", "add", "mm", "add"]


def test_what_a_graph_captures_is_done_when_it_is_replayed(traced: Any) -> None:
    trace = traced["graph"].trace
    assert steps(trace, "operator") == ["copy_", "exp", "add", "clone"]
    assert GRAPHED in trace.notes
    assert KEPT not in trace.notes, "the graph computes it again"


def test_a_result_of_an_earlier_call_is_told(traced: Any) -> None:
    assert traced["kept from the first call"].trace.notes == (KEPT,)


def test_copies_between_host_and_gpu_and_waits(traced: Any) -> None:
    trace = traced["waits"].trace
    assert [(step.kind) for step in trace.steps if step.kind in ("copy", "sync")] == ["copy", "copy", "sync"]
    assert {trace.tensors[number].device for step in trace.steps for number in step.makes} == {"cpu", "cuda"}


def test_the_host_waits_for_streams_and_events_too(traced: Any) -> None:
    assert steps(traced["waits of streams and events"].trace, "sync", "operator") == ["synchronize"] * 2 + ["add"]


def test_what_torch_cannot_do_without_a_gpu_is_pretended(traced: Any) -> None:
    trace = traced["helpers of torch.cuda"].trace
    assert steps(trace, "operator", "copy") == [
        "addmm", "_to_copy", "index", "sum", "zeros", "mm", "mm", "_thnn_fused_gru_cell", "add", "_to_copy", "bincount",
        "add",
    ]  # fmt: skip
    assert GRAPHED in trace.notes
    assert "bincount" in steps(trace, "sync"), "torch looks for the largest value"


def test_a_custom_operator_is_called_by_its_name(traced: Any) -> None:
    assert steps(traced["custom operator"].trace, "operator") == ["mul", "mul", "add"]


def test_what_changes_a_part_moves_a_part(traced: Any) -> None:
    trace = traced["changed in part"].trace
    change = next(step for step in trace.steps if step.name.startswith("aten::index_copy_"))
    assert roofline.moved_bytes(trace, change) == 2 * 8 + 2 * (2 * 128 * 4)
    assert trace.steps[-1].kind == "view"


def test_a_launch_with_descriptors_moves_their_tensors(traced: Any) -> None:
    trace = traced["described"].trace
    (step,) = (step for step in trace.steps if step.kind == "triton")
    assert step.bytes == 2 * 64 * 128 * 4
    assert [len(each.content) for each in step.launch.parameters] == 2 * [128, 4, 4, 8, 8]
    assert (trace.lacks, ["tensordesc" in note for note in trace.notes]) == (None, [True]), "it is forecast"
    moved = [traced["described"].launches[0].executed[f"{way}_sectors"] for way in ("load", "store")]
    assert [4 * 2 * 32 * each for each in moved] == [64 * 128 * 4] * 2, "by four warps of two blocks"


def test_aliases_are_kept(traced: Any) -> None:
    """What is written in place is the same tensor; a view is made by a step of its own."""
    trace = traced["in place"].trace
    copy, scale, view, clone = trace.steps
    assert list(copy.makes) == list(scale.makes) == list(tensors_in(view.arguments[:1])) == list(trace.constants)
    assert view.kind == "view"
    assert list(clone.reads) == list(view.makes)


def test_precision_is_that_of_the_operator(traced: Any) -> None:
    trace = traced["half"].trace
    assert [step.precision for step in trace.steps if step.name == "aten::mm.default"] == ["fp16"]
    trace = traced["eighths"].trace
    assert [step.precision for step in trace.steps if step.name.startswith("aten::_scaled_mm")] == ["fp8"]
