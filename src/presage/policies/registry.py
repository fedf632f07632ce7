"""Policies by name: entry points in the group `presage.policies`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.plugins.group import POLICIES

if TYPE_CHECKING:
    from presage.policies.base import Policy

DEFAULT = "risk"
names = POLICIES.names


def get(spec: str = DEFAULT, **settings: Any) -> Policy:
    """Return a new policy, such as `topk:k=4`. Raises PresageError for an unknown name or a wrong setting."""
    policy: Policy = POLICIES.make(spec, **settings)
    return policy
