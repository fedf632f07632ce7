"""Building blocks of current research models: triangle updates, gated delta rules, linear attention, experts' gates."""

from __future__ import annotations

from collections.abc import Iterator

from presage.problems.base import Problem


def problems() -> Iterator[Problem]:
    """Every problem of this room."""
    from presage_catalogue.research.chunk_cumsum_gates.problem import ChunkCumsumGates
    from presage_catalogue.research.delta_rule_recurrent.problem import DeltaRuleRecurrent
    from presage_catalogue.research.gdn_chunk_fwd_h.problem import GdnChunkFwdH
    from presage_catalogue.research.gdn_chunk_fwd_o.problem import GdnChunkFwdO
    from presage_catalogue.research.gdn_recompute_w_u.problem import GdnRecomputeWU
    from presage_catalogue.research.layernorm_gate_project.problem import LayernormGateProject
    from presage_catalogue.research.linear_attention.problem import LinearAttention
    from presage_catalogue.research.moe_gate.problem import MoeGate
    from presage_catalogue.research.swiglu_mlp.problem import SwigluMlp
    from presage_catalogue.research.trimul.problem import Trimul
    from presage_catalogue.research.trimul_einsum.problem import TrimulEinsum

    yield from (
        ChunkCumsumGates(),
        DeltaRuleRecurrent(),
        GdnChunkFwdH(),
        GdnChunkFwdO(),
        GdnRecomputeWU(),
        LayernormGateProject(),
        LinearAttention(),
        MoeGate(),
        SwigluMlp(),
        Trimul(),
        TrimulEinsum(),
    )
