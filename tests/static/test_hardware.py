"""The catalogue of GPUs: names are found, and its numbers agree with each other."""

import pytest

from presage import PresageError
from presage.static import hardware


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("h200", "h200"),
        ("H200", "h200"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("RTX 5090", "rtx5090"),
        ("a100-80gb", "a100"),
        ("Tesla T4", "t4"),
        ("NVIDIA B300 SXM6 AC", "b300"),
    ],
)
def test_names_people_and_drivers_use(name, found):
    assert hardware.find(name).name == found


def test_bare_architecture_has_limits_but_no_multiprocessors():
    bare, product = hardware.find("sm_90"), hardware.find("h200")
    assert bare.multiprocessors is None
    assert (bare.shared_per_block, bare.threads_per_sm) == (product.shared_per_block, product.threads_per_sm)
    assert hardware.find("sm_90a") == bare


@pytest.mark.parametrize(("wrong", "near"), [("h2000", "h200"), ("rtx4091", "rtx4090"), ("sm_91", "sm_90")])
def test_unknown_target_names_the_nearest(wrong, near):
    with pytest.raises(PresageError, match=f"no target '{wrong}'.*{near}"):
        hardware.find(wrong)


@pytest.mark.parametrize(
    ("name", "multiprocessors", "warps", "shared_kib", "arch"),
    [
        ("a100", 108, 64, 163, "sm_80"),
        ("rtx4090", 128, 48, 99, "sm_89"),
        ("h200", 132, 64, 227, "sm_90a"),
        ("b200", 148, 64, 227, "sm_100a"),
        ("b300", 148, 64, 227, "sm_103a"),
        ("t4", 40, 32, 64, "sm_75"),
    ],
)
def test_known_values(name, multiprocessors, warps, shared_kib, arch):
    gpu = hardware.find(name)
    assert gpu.multiprocessors == multiprocessors
    assert gpu.warps_per_sm == warps
    assert gpu.shared_per_block == shared_kib << 10
    assert gpu.compile_arch == arch


@pytest.mark.parametrize("gpu", hardware.catalogue().values(), ids=lambda gpu: gpu.name)
def test_numbers_agree_with_each_other(gpu):
    assert gpu.shared_per_block + gpu.shared_reserved == gpu.shared_per_sm
    # 128 float32 lanes per multiprocessor (64 on the sm_75 and sm_80 data-centre parts), two flops each.
    lanes = 64 if gpu.arch in ("sm_75", "sm_80") else 128
    assert gpu.peak_flops["fp32"] == pytest.approx(2 * lanes * gpu.multiprocessors * gpu.boost_hz, rel=0.12)
    assert 1e11 < gpu.bandwidth < 1e13
    peaks = [gpu.peak_flops[kind] for kind in ("tf32", "fp16", "fp8") if kind in gpu.peak_flops]
    assert peaks == sorted(peaks)
    assert gpu.peak_flops["int8"] >= gpu.peak_flops.get("fp8", 0.0) or gpu.name == "b300", "which has few units for it"


def test_every_name_is_its_own():
    spellings = [name for gpu in hardware.catalogue().values() for name in (gpu.name, gpu.product, *gpu.aliases)]
    assert all(hardware.find(name).name for name in spellings)
    assert len({name.lower() for name in spellings}) == len(spellings)
