"""How near a search came to the fastest recorded kernel, beside random choice."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest

from presage import PresageError, Recording, search
from presage.devices.recorded import RecordedDevice
from presage.searches.optimum import expected_behind, known
from presage.searches.words import optimum


@pytest.mark.parametrize("draws", [1, 2, 4, 6])
def test_random_choice_is_what_all_draws_are_on_average(draws: int) -> None:
    times: list[float | None] = [1.0, 1.2, 1.5, 3.0, None, None]
    best = [min((t for t in some if t), default=None) for some in itertools.combinations(times, draws)]
    mean = statistics.mean(found - 1 for found in best if found)
    assert expected_behind([math.log(t) for t in times if t], len(times), draws) == pytest.approx(mean)


def test_a_kernel_s_place_among_the_recorded(toy: Recording) -> None:
    device = RecordedDevice(toy)
    rows = sorted((row for row in toy.rows("toy") if row.cases), key=lambda row: row.total_ns)
    found = known(device, device.problem("toy"), rows[0].hash, 60)
    assert found is not None
    assert (found["rank"], found["behind"], found["of"]) == (1, 0.0, 60)
    assert found["random"] == {"measurements": 61 / 2, "behind": pytest.approx(0.0)}
    assert optimum(found).startswith("it is the fastest of the 60 recorded kernels; random choice is 0.0 % behind")
    third = known(device, device.problem("toy"), rows[2].hash, 3)
    assert third is not None
    assert (third["rank"], third["random"]["measurements"]) == (3, 61 / 4)
    assert third["behind"] == pytest.approx(rows[2].total_ns / rows[0].total_ns - 1)
    assert third["random"]["behind"] > third["behind"]


def test_a_kernel_file_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(PresageError, match=r"there is no file nosuch\.cu"):
        search("nosuch.cu")
