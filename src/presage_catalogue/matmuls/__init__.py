"""Products of matrices."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.matmuls import products
    from presage_catalogue.matmuls.batched_matmul.problem import BatchedMatmul
    from presage_catalogue.matmuls.matmul.problem import Matmul
    from presage_catalogue.matmuls.matmul_sum_rows.problem import MatmulSumRows
    from presage_catalogue.matmuls.matvec.problem import Matvec

    yield from products.OPERATIONS
    yield from (BatchedMatmul(), Matmul(), MatmulSumRows(), Matvec())
