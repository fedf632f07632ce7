"""Signs that a module will fail: what it does otherwise than its reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from presage import StaticReport
from presage.forecasters import module_failures
from presage.forecasters.module_model import ModuleModel
from presage.static.trace import Launch, Step, TensorSpec, Trace

IMAGE = TensorSpec((8, 16, 32, 32), "float32")


def step(name: str, **more: Any) -> Step:
    about = {"results": {"tensor": 1}, **more}
    return Step("operator", f"aten::{name}.default", ({"tensor": 0},), {}, **about)


def report(*steps: Step, made: str = "float32", lacks: str | None = None) -> StaticReport:
    trace = Trace((IMAGE, replace(IMAGE, dtype=made), IMAGE), (0,), (), steps, {"tensor": 1}, lacks=lacks)
    return StaticReport("h200", "sm_90a", "ok", "torch", trace=trace)


CONVOLUTION, NORM, PRODUCT = step("convolution"), step("cudnn_batch_norm"), step("mm")
ATTENTION = step("_scaled_dot_product_flash_attention")
KERNEL = Step("triton", "mine", launch=Launch(0, (1, 1, 1), (128, 1, 1), 0, ()))
VIEW = Step("view", "aten::view.default", ({"tensor": 0},), {}, {"tensor": 2})
REFERENCE = [report(CONVOLUTION, NORM, PRODUCT)]


@pytest.mark.parametrize(
    ("module", "signs"),
    [
        pytest.param(report(CONVOLUTION, NORM, PRODUCT), set(), id="the same"),
        pytest.param(report(CONVOLUTION, PRODUCT), {"no batch norms"}, id="as if it were trained"),
        pytest.param(report(CONVOLUTION, NORM, replace(PRODUCT, precision="tf32")), {"products in TF32"}, id="TF32"),
        pytest.param(report(CONVOLUTION, NORM, PRODUCT, made="float16"), {"half precision"}, id="half"),
        pytest.param(report(KERNEL, NORM, PRODUCT), {"its own kernels", "no convolutions"}, id="a kernel of its own"),
        pytest.param(
            report(KERNEL, CONVOLUTION, NORM), {"its own kernels", "no products"}, id="a product of its own"
        ),
        pytest.param(report(CONVOLUTION, NORM, ATTENTION), set(), id="attention in place of products"),
        pytest.param(
            report(CONVOLUTION, NORM, PRODUCT, step("relu_", results={"tensor": 0})), {"changes its inputs"},
            id="in place",
        ),
        pytest.param(
            report(CONVOLUTION, NORM, PRODUCT, VIEW, step("relu_", results={"tensor": 2})), {"changes its inputs"},
            id="in place, by a view",
        ),
        pytest.param(
            report(replace(KERNEL, precision="fp16"), CONVOLUTION, NORM, PRODUCT),
            {"its own kernels", "tensor cores in its kernels"},
            id="tensor cores",
        ),
        pytest.param(report(CONVOLUTION, NORM, PRODUCT, lacks="it waits"), {"lacks"}, id="not all is known"),
        pytest.param(StaticReport("h200", "sm_90a", "unknown", "torch"), {"not traced"}, id="nothing is known"),
    ],
)  # fmt: skip
def test_what_it_does_otherwise(module: StaticReport, signs: set[str]) -> None:
    assert module_failures.signs([module], REFERENCE) == signs
    assert signs <= set(module_failures.SIGNS)
    usual, found = (ModuleModel.load().p_fail(each) for each in (set[str](), signs))
    assert 0.1 < usual < 0.3
    assert found == usual or (found > usual) is (signs != {"its own kernels"})


def test_a_reference_that_has_it_too_is_no_sign() -> None:
    half = report(CONVOLUTION, NORM, PRODUCT, made="float16")
    assert module_failures.signs([half], [half]) == set()
    assert module_failures.signs([half], []) == {"half precision"}
    with_cores = report(replace(KERNEL, precision="fp16"), CONVOLUTION, NORM, PRODUCT, made="float16")
    assert module_failures.signs([with_cores], [half]) == {"its own kernels"}
