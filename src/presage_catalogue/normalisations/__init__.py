"""Operations that scale a row by its own statistics."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.normalisations import rows
    from presage_catalogue.normalisations.batchnorm_inference.problem import BatchNormInference
    from presage_catalogue.normalisations.batchnorm_training.problem import BatchNormTraining
    from presage_catalogue.normalisations.layernorm.problem import LayerNorm
    from presage_catalogue.normalisations.rmsnorm.problem import RmsNorm

    yield from rows.OPERATIONS
    yield from (BatchNormInference(), BatchNormTraining(), LayerNorm(), RmsNorm())
