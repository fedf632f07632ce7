"""Static reports of Triton modules: host code on tensors without values, and launches compiled for real."""

import pytest

from presage.kernels.kernel import from_source
from presage.problems import registry
from presage.problems import static as problem_static
from presage.static import hardware, reporting
from presage.static.launch_request import Job, TensorSpec

pytestmark = [pytest.mark.usefixtures("has_triton"), pytest.mark.slow]

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
ADD = (
    HEAD
    + """
@triton.jit
def add(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
"""
)
MATMUL = (
    HEAD
    + """
@triton.autotune(
    configs=[triton.Config({"B": 64}, num_warps=4, num_stages=2), triton.Config({"B": 32}, num_warps=2)], key=["n"]
)
@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["B"] == 0})
@triton.jit
def matmul(a, b, c, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, n, B):
        k = first + tl.arange(0, B)
        acc = tl.dot(tl.load(a + i[:, None] * n + k[None, :]), tl.load(b + k[:, None] * n + j[None, :]), acc)
    tl.store(c + i[:, None] * n + j[None, :], acc)

def custom_kernel(data):
    a, b = data
    c = torch.empty(a.shape, device=a.device, dtype=torch.float32)
    matmul[lambda meta: (triton.cdiv(len(a), meta["B"]), triton.cdiv(len(a), meta["B"]))](a, b, c, len(a))
    return torch.relu(c)
"""
)
X = ((1000,), "float32")


def call(body):
    return ADD + "def custom_kernel(data):\n    (x,) = data\n    y = torch.empty_like(x)\n" + body + "    return y\n"


@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_tensor_cores_autotuning_and_heuristics(inspect_source, arch):
    square = ((1024, 1024), "float16")
    report = inspect_source(MATMUL, ".py", square, square, target=arch)
    assert report.error is None
    (launch,) = report.launches
    assert launch.grid == (16, 16, 1)
    assert launch.block == (128, 1, 1)
    assert launch.options["num_warps"] == 4
    assert launch.options["num_stages"] == 2
    assert launch.options["constants"] == {"B": 64, "EVEN": True}
    assert launch.instructions["tensor"] >= 1
    assert launch.shared_bytes > 0
    assert report.operators == {"relu": 1}
    assert "autotuned" in report.notes[0]


def test_arguments_are_specialised_as_in_a_real_launch(inspect_source):
    launches = (
        "add[(4,)](x, y, 1000, B=256)",
        "add[(1,)](x[1:], y, 1, B=128, num_warps=2)",
        "add[(4,)](x, y, 1008, 256)",
    )
    body = "".join(f"    {launch}\n" for launch in launches)
    first, second, third = inspect_source(call(body), ".py", X).launches
    flags = [
        {each["name"]: each["divisible_by_16"] for each in launch.options["arguments"]}
        for launch in (first, second, third)
    ]
    assert flags[0] == {"x": True, "y": True, "n": False}
    assert flags[1] == {"x": False, "y": True}
    assert flags[2] == {"x": True, "y": True, "n": True}
    assert second.options["constants"] == {"n": 1, "B": 128}
    assert second.block == (64, 1, 1)


def test_the_same_launch_is_counted(inspect_source):
    body = "    for _ in range(3):\n        add[(4,)](x, y, 1000, 256)\n"
    (launch,) = inspect_source(call(body), ".py", X).launches
    assert launch.count == 3


def test_modules_of_the_other_convention(inspect_source):
    text = (
        ADD
        + """
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8).cuda()

    def forward(self, x):
        y = torch.zeros_like(x).to("cuda")
        add[(torch.cuda.get_device_properties(x.device).multi_processor_count,)](x, y, x.numel(), 128)
        return self.linear(y)
"""
    )
    report = inspect_source(text, ".py", ((100, 8), "float32"), target="h200")
    assert report.error is None
    assert report.launches[0].grid == (132, 1, 1)
    assert report.operators == {"zeros_like": 1, "addmm": 1}


CANNOT_WORK = [
    (call("    add[(4,)](x, y, 1000, 100)\n"), "compile_error", "power of 2"),
    (call("    add[(4,)](x, y, 1000, 256, nonsense=1)\n"), "runtime_error", "nonsense"),
    (call("    add[(1 << 31,)](x, y, 1000, 256)\n"), "runtime_error", "grid's x is 2147483648"),
    (call("    if x.sum().item() > 0:\n        pass\n"), "unknown", "at line 12: if x.sum().item() > 0:"),
    (call("    y = x[x > 0]\n"), "unknown", "nonzero"),
    (call("    missing()\n"), "runtime_error", "missing"),
    (ADD, "runtime_error", "neither custom_kernel"),
    (ADD + "def custom_kernel(data)\n", "compile_error", "SyntaxError: expected ':'"),
    (ADD + "import nosuch.part\n", "unknown", "nosuch is not installed in /"),
    (ADD + "from torch import nosuch\n", "compile_error", "cannot import name 'nosuch'"),
    (
        ADD + "import os\nos._exit(3)\n",
        "compile_error",
        "the module or its compiler ended its process early, with status 3",
    ),
    (ADD + "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "compile_error", "signal 11"),
]


@pytest.fixture(scope="module")
def cannot_work(inspect_sources):
    """The reports of all of these, made together: none disturbs the others."""
    return inspect_sources([text for text, _, _ in CANNOT_WORK], ".py", X)


@pytest.mark.parametrize("index", range(len(CANNOT_WORK)))
def test_what_cannot_work_says_so(cannot_work, index):
    _, status, message = CANNOT_WORK[index]
    report = cannot_work[index]
    assert (report.status, report.launches) == (status, ())
    assert message in report.error


def test_an_error_names_the_user_s_file():
    kernel = from_source("import torch\ndef custom_kernel(data)\n", ".py", "src/mine.py")
    (report,) = reporting.reports([Job(kernel, {}, (TensorSpec(*X),), hardware.find("h200"))])
    assert report.error == "SyntaxError: expected ':' (mine.py, line 2)"


def test_host_code_that_hangs_is_stopped(inspect_source):
    report = inspect_source(call("    while True:\n        pass\n"), ".py", X, timeout=2.0)
    assert report.status == "timeout"


def test_too_much_shared_memory_cannot_launch(inspect_source):
    text = MATMUL.replace('{"B": 64}', '{"B": 128}').replace("num_warps=4, num_stages=2", "num_warps=8, num_stages=6")
    square = ((1024, 1024), "float32")
    report = inspect_source(
        text.replace(', triton.Config({"B": 32}, num_warps=2)', ""), ".py", square, square, target="rtx4090"
    )
    assert report.status == "runtime_error"
    assert "cannot launch: out of resource: shared memory" in report.error


def test_the_environment_is_empty(inspect_source, monkeypatch):
    monkeypatch.setenv("PRESAGE_SECRET", "1")
    text = "import os\nassert 'PRESAGE_SECRET' not in os.environ\n" + call("    add[(4,)](x, y, 1000, 256)\n")
    assert inspect_source(text, ".py", X).status == "ok"


def test_module_without_launches(inspect_source):
    report = inspect_source(call("    y = x + 1\n"), ".py", X)
    assert (report.status, report.launches, report.operators) == ("ok", (), {"add": 1})
    assert "no Triton kernel" in report.notes[0]


@pytest.mark.parametrize("target", ["h200"])
def test_the_softmax_seed(target):
    problem = registry.get("softmax")
    kernel = registry.find_kernel(problem, "rows_triton.py")
    ((whole, blocks),) = problem_static.reports(problem, [kernel], problem.timed["gpu"], hardware.find(target))
    assert (whole.launches[0].name, whole.launches[0].grid) == ("softmax_whole", (16384, 1, 1))
    assert (blocks.launches[0].name, blocks.launches[0].loops) == ("softmax_blocks", 2)
    assert whole.launches[0].instructions["global_load_128"] == 2


HOST_CODE = {
    "a graph that is captured and replayed": (
        "    graph = torch.cuda.CUDAGraph()\n    with torch.cuda.graph(graph):\n        add[(4,)](x, y, 1000, 256)\n"
        "    graph.replay()\n",
        [("add", (4, 1, 1), 1)],
    ),
    "streams and events": (
        "    side, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)\n"
        "    side.wait_stream(torch.cuda.current_stream())\n"
        "    with torch.cuda.stream(side), torch.cuda.device(x.device):\n"
        "        event.record()\n        add[(4,)](x, y, 1000, 256)\n"
        "    torch.cuda.current_stream().wait_event(event)\n",
        [("add", (4, 1, 1), 1)],
    ),
    "tuned by hand": (
        "    best = min((256, 512), key=lambda b: triton.testing.do_bench(lambda: add[(b,)](x, y, 1000, b)))\n"
        "    add[(2,)](x, y, 1000, best)\n",
        [("add", (2, 1, 1), 1)],
    ),
    "different memory lies at different addresses": (
        "    add[(1 if x.data_ptr() == y.data_ptr() else 7,)](x, y, 1000, 256)\n",
        [("add", (7, 1, 1), 1)],
    ),
    "nothing is launched by an empty grid": (
        "    add[(0,)](x, y, 1000, 256)\n    add[(4,)](x, y, 1000, 256)\n",
        [("add", (4, 1, 1), 1)],
    ),
    "a module that is moved": (
        "    torch.nn.Linear(8, 8).half().to(x.device)\n    add[(4,)](x, y, 1000, 256)\n",
        [("add", (4, 1, 1), 1)],
    ),
    "an operator of its own": (
        "    @torch.library.custom_op('mine::plus', mutates_args=())\n    def plus(x: torch.Tensor) -> torch.Tensor:\n"
        "        z = torch.empty_like(x)\n        add[(5,)](x, z, 1000, 256)\n        return z\n"
        "    @plus.register_fake\n    def _(x):\n        return torch.empty_like(x)\n    plus(x)\n",
        [("add", (5, 1, 1), 1)],
    ),
    "a process that it leaves behind": (
        "    import os, time\n    if os.fork() == 0:\n        time.sleep(600)\n    add[(4,)](x, y, 1000, 256)\n",
        [("add", (4, 1, 1), 1)],
    ),
    "a copy of itself": (
        "    import os\n    os.fork()\n    add[(4,)](x, y, 1000, 256)\n",
        [("add", (4, 1, 1), 1)],
    ),
    "numbers put on the GPU": (
        "    torch.tensor([1, 2], device=x.device), torch.tensor(3.0).cuda(), torch.as_tensor(4, device='cuda')\n"
        "    with torch.device('cuda'):\n        assert torch.tensor(5.0).is_cuda\n"
        "    add[(torch.tensor([6]).item(),)](x, y, 1000, 256)\n",
        [("add", (6, 1, 1), 1)],
    ),
    "chance of the GPU's own": (
        "    chance = torch.Generator(device='cuda').manual_seed(1)\n    assert isinstance(chance, torch.Generator)\n"
        "    y = torch.randn(1000, device='cuda', generator=chance).uniform_(0, 1, generator=chance)\n"
        "    add[(4,)](x, y, 1000, 256)\n",
        [("add", (4, 1, 1), 1)],
    ),
    "types of a submission": (
        "    from task import input_t\n    add[(4,)](x, y, 1000, 256)\n",
        [("add", (4, 1, 1), 1)],
    ),
}


def test_what_host_code_of_the_communities_does(inspect_sources):
    found = inspect_sources([call(body) for body, _ in HOST_CODE.values()], ".py", X)
    for (name, (_, launches)), report in zip(HOST_CODE.items(), found, strict=True):
        assert report.error is None, name
        assert [(each.name, each.grid, each.count) for each in report.launches] == launches, name


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("    add[(4,)](x, torch.empty(1000), 1000, 256)\n", "a tensor in the host's memory cannot be passed"),
        ("    add[(1000 / 256,)](x, y, 1000, 256)\n", "'float' object cannot be interpreted as an integer"),
        ("    add[(4,)](x, y, int(x.sum().item()), 256)\n", "the host code asks for a tensor's value"),
        ("    x[x > 0] + 1\n", "the host code makes a tensor whose shape depends on values"),
        ("    x.to_sparse() + 1\n", "the host code makes or uses a sparse tensor, which cannot be traced"),
        ("    torch.ops.aten._fused_moe(x)\n", "_fused_moe"),
        ("    x.frob()\n", "'Tensor' object has no attribute 'frob'"),
        ("    raise RuntimeError('\\x1b[2J \\ud800 ' + 'x' * 10000)\n", "RuntimeError: ?[2J ? xxx"),
    ],
)
def test_what_would_fail_says_why(inspect_source, body, complaint):
    report = inspect_source(call(body), ".py", X)
    assert report.status in ("runtime_error", "unknown")
    assert complaint in report.error
    assert max(map(len, report.error.splitlines())) < 1000


def test_autotuning_finds_what_fits_for_every_key(inspect_source):
    too_large = 'triton.Config({"B": 128}, num_warps=4, num_stages=8)'
    text = MATMUL.replace("configs=[", f"configs=[{too_large}, ")
    calls = "def custom_kernel(data):\n    a, b = data\n    return [one(a[:n, :n], b[:n, :n]) for n in (1024, 512)]\n"
    square = ((1024, 1024), "float16")
    report = inspect_source(text.replace("custom_kernel(data)", "one(*data)") + calls, ".py", square, square)
    assert report.error is None
    assert [launch.options["constants"]["B"] for launch in report.launches] == [64, 64]
    assert "autotuned" in report.notes[0]


SCALED = (
    HEAD
    + """
@triton.jit
def scaled(x, y, ORDER, B: tl.constexpr):
    for first in range(0, n, B):
        i = first + tl.arange(0, B)
        tl.store(y + i, tl.load(x + i, mask=i < many) * eps, mask=i < n)

def custom_kernel(data):
    (x,) = data
    y = torch.empty_like(x)
    n, many, eps = 1000, 1 << 40, 0.5
    scaled[(1,)](x, y, ORDER, B=256)
    return y
"""
)


def test_what_is_executed_does_not_depend_on_the_order_of_arguments(inspect_sources):
    orders = ("n, many, eps", "eps, many, n", "many, eps, n")
    found = inspect_sources([SCALED.replace("ORDER", order) for order in orders], ".py", X)
    kinds = ("global_load", "global_store", "load_sectors", "store_sectors")
    counts = [tuple(report.launches[0].executed[kind] for kind in kinds) for report in found]
    assert len(set(counts)) == 1
    assert min(counts[0]) > 0


def test_a_bare_architecture_has_no_number_of_multiprocessors(inspect_source):
    body = "    count = torch.cuda.get_device_properties(0).multi_processor_count\n    add[(count,)](x, y, 1000, 256)\n"
    bare, named = (inspect_source(call(body), ".py", X, target=target) for target in ("sm_90", "h200"))
    assert [report.launches[0].grid for report in (bare, named)] == [(1, 1, 1), (132, 1, 1)]
    assert [len(report.notes) for report in (bare, named)] == [1, 0]
    assert "name a GPU" in bare.notes[0]
