"""Policies by name: entry points in the group `presage.policies`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.plugins.group import POLICIES

if TYPE_CHECKING:
    from presage.policies.base import Policy

DEFAULT = "risk"
names = POLICIES.names


def get(spec: str = DEFAULT, **settings: Any) -> Policy:
    """A new policy of this name with these settings, such as `topk:k=4`, or a PresageError that says what there is."""
    policy: Policy = POLICIES.make(spec, **settings)
    return policy
