"""Splits of problems by their names."""

import pytest

from presage.problems import splits


@pytest.mark.parametrize(
    "name",
    ["KB_L3_15", "level3_KB_L3_15", "level3_KB_L3_15 (float16)", "level3/15_DenseNet121.py", "level3_15"],
)
def test_a_kernelbench_problem_is_in_one_split_by_any_of_its_names(name: str) -> None:
    assert splits.canonical(name) == "kernelbench/3/15"
    assert splits.of_problem(name) == splits.of_problem("KB_L3_15")


def test_splits_have_about_the_shares_that_they_should() -> None:
    found = [splits.of_problem(f"problem {number}") for number in range(2000)]
    shares = {name: found.count(name) / len(found) for name in set(found)}
    assert shares == pytest.approx({"train": 0.7, "validation": 0.1, "test_problem": 0.2}, abs=0.03)


def test_what_train_shares_with_test_is_in_train() -> None:
    by_split = {splits.of_problem(f"p{number}"): f"p{number}" for number in range(100)}
    train, validation, test = (by_split[name] for name in ("train", "validation", "test_problem"))
    assert splits.of_origins([test, train]) == "train"
    assert splits.of_origins([test, "common/matmuls"]) == "train"
    assert splits.of_origins([test, validation]) == "test_problem"
    assert splits.of_origins([f"{test} (float16)"]) == "test_problem"
    assert splits.of_origins([validation]) == "validation"
