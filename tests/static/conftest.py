"""What the tests of static reports share: jobs from source text, and skips where a compiler is missing."""

import importlib.util

import pytest

from presage.kernels.kernel import from_source
from presage.static import hardware, reporting, toolkit
from presage.static.launch_request import Job
from presage.static.trace import TensorSpec


@pytest.fixture(scope="session")
def nvrtc_library():
    """The path of NVRTC."""
    try:
        toolkit.program("nvdisasm")
        toolkit.includes()
        return str(toolkit.nvrtc())
    except toolkit.ToolkitError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def has_triton():
    for package in ("torch", "triton"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    try:
        toolkit.program("nvdisasm")
    except toolkit.ToolkitError as error:
        pytest.skip(str(error))


@pytest.fixture(params=[pytest.param("sm_80", marks=pytest.mark.sweep), "sm_90", "sm_100"])
def arch(request):
    """Each architecture in turn; the oldest in sweeps."""
    return request.param


@pytest.fixture(scope="session")
def inspect_sources():
    """inspect_sources(texts, suffix, *inputs, target=, dims=): the static reports of kernels given as text."""

    def inspect(texts, suffix, *inputs, target="sm_90", dims=None, timeout=120.0):
        tensors, gpu = tuple(TensorSpec(*each) for each in inputs), hardware.find(target)
        kernels = [from_source(text, suffix, f"kernel{suffix}").render() for text in texts]
        return reporting.reports([Job(kernel, dims or {}, tensors, gpu) for kernel in kernels], timeout=timeout)

    return inspect


@pytest.fixture(scope="session")
def inspect_source(inspect_sources):
    """The same of one text."""
    return lambda text, *arguments, **options: inspect_sources([text], *arguments, **options)[0]
