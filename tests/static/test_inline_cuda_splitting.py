"""CUDA C++ is split into a part for the device and one for the host, and no line moves."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.static.inline_cuda.lexer import text_of, tokens
from presage.static.inline_cuda.splitting import SplitError, launches_as_calls, split

KERNEL = "__global__ void k(float* x) { x[0] = 1; }\n"
HOST = "void run(torch::Tensor t) { k<<<1, 2>>>(t.data_ptr<float>()); }\n"


def test_each_side_has_what_is_its_own():
    text = (
        "#include <torch/extension.h>\n#include <mma.h>\n"
        + KERNEL
        + "__device__ float f(float x) { return x; }\n"
        + HOST
    )
    parts = split(text)
    assert "run" not in parts.device
    assert "torch" not in parts.device
    assert "x[0] = 1" in parts.device
    assert "mma.h" in parts.device
    assert "x[0] = 1" not in parts.host
    assert "f(float" not in parts.host
    assert "mma.h" not in parts.host
    assert '::presage::launch(PRESAGE_UNIT, "k", x);' in parts.host
    assert "::presage::configure(1, 2), k(t.data_ptr<float>())" in parts.host
    assert parts.kernels == ("k",)
    assert text.count("\n") == parts.host.count("\n") == parts.device.count("\n")


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (
            "template <typename T, int N = 4> __global__ void k(T* a, const int n) { }",
            'instance("k", {::presage::type<T>(), ::presage::value<N>()}), a, n',
        ),
        ("namespace a { namespace b { __global__ void k(int) {} } }", '"a::b::k", presage_0'),
        ('extern "C" { __global__ void k(float4 (x)) {} }', '"k"'),
        ("template <> __global__ void k<float>(const float* x) {}", '"k<float>", x'),
        ("template <class... Ts> __global__ void k(Ts... all) {}", "::presage::types<Ts...>()"),
        ("__global__ void __launch_bounds__(256, 2) k(const float* __restrict__ x, size_t n) {}", '"k", x, n'),
        ("__global__ void k(std::pair<int, int> p, int v[4], int d = f(1, 2)) {}", '"k", p, v, d'),
        ("__global__ void k(void) {}", 'PRESAGE_UNIT, "k");'),
    ],
)  # fmt: skip
def test_a_kernel_hands_on_its_name_and_parameters(text, call):
    assert call in split(text).host


@pytest.mark.parametrize(
    ("launch", "call"),
    [
        ("k<<<g, b>>>(x)", "::presage::configure(g, b), k(x)"),
        (
            "a::k<T, (1 > 0)><<<dim3(1, 2), b, 4 * sizeof(T), s>>>(x)",
            "::presage::configure(dim3(1, 2), b, 4 * sizeof(T), s), a::k<T, (1 > 0)>(x)",
        ),
        ("k<std::pair<int, T>> <<<1, 1>>> (x)", "::presage::configure(1, 1), k<std::pair<int, T>>  (x)"),
        ("(*f)<<<1, 1>>>(x)", "::presage::configure(1, 1), (*f)(x)"),
        ("table[i]<<<1, 1>>>(x)", "::presage::configure(1, 1), table[i](x)"),
        ("#define GO(n) \\\n  k<n><<<1, n>>>(x)", "#define GO(n) \\\n  ::presage::configure(1, n), k<n>(x)"),
        ("\"k<<<1>>>\" 'x' // k<<<1, 2>>>(y)", "\"k<<<1>>>\" 'x' // k<<<1, 2>>>(y)"),
    ],
)  # fmt: skip
def test_a_launch_becomes_a_call(launch, call):
    assert launches_as_calls(launch) == call


@pytest.mark.parametrize(
    ("text", "in_device"),
    [
        ("struct P { float a; __device__ float f() const { return __ldg(&a); } };", True),
        ("struct H { std::vector<int> a; };", False),
        ("constexpr int N = 4;", True),
        ("constexpr int half(int n) { return n / 2; }", True),
        ("static int half(int n) { return n / 2; }", False),
        ("__host__ __device__ int half(int n) { return n / 2; }", True),
        ("torch::Tensor f(torch::Tensor x);", False),
        ("using accessor = torch::PackedTensorAccessor32<float, 2>;", True),
        ("PYBIND11_MODULE(a, m) { m.def(\"f\", &f); }", False),
        ("__constant__ float w[4] = {1, 2, 3, 4};", True),
        ("static const std::map<int, int> m = {{1, 2}};", False),
    ],
)  # fmt: skip
def test_what_the_device_is_given(text, in_device):
    assert bool(split(text).device.strip()) is in_device


def test_only_the_device_s_functions_of_a_class_are_emptied():
    host = split("struct P { __device__ P(int a) : a(a) { __syncwarp(); } int both() { return a; } int a; };").host
    assert "__syncwarp" not in host
    assert "return a" in host


def test_a_template_whose_parameter_has_no_name_is_refused():
    with pytest.raises(SplitError, match="without a name"):
        split("template <typename> __global__ void k(int n) {}")


PIECES = st.sampled_from(
    [
        *("{", "}", "(", ")", "<", ">", "<<<", ">>>", '"', "'", "\\", "\n", "//", "/*", "*/", "#", "#define A {", ";"),
        *(
            'R"(',
            ')"',
            "'a'",
            '"}"',
            "x",
            "template",
            "__global__",
            "void",
            "1'000",
            "::",
            "namespace a",
            "struct",
            " ",
        ),
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_tokens_are_the_text(text):
    assert text_of(tokens(text)) == text


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_is_split_or_refused(text):
    with contextlib.suppress(SplitError):
        split(text)


INERT = st.text(st.sampled_from('{}();<>"x \\'), max_size=12)


@given(INERT, INERT)
def test_what_is_in_strings_and_comments_does_not_count(in_comment, in_string):
    quoted = in_string.replace("\\", "\\\\").replace('"', '\\"')
    body = f'/* {in_comment} */ const char* s = "{quoted}"; // {in_comment}.\n'
    parts = split(KERNEL.replace("x[0]", f"{body} x[0]") + HOST)
    assert "run" not in parts.device
    assert "x[0]" in parts.device
    assert "void run" in parts.host
    assert "x[0]" not in parts.host
