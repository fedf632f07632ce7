"""Look up environments, agents and critics by the names of their entry points, as given on the command line."""

from __future__ import annotations

from typing import Any

from presage.plugins.group import Group

ENVIRONMENTS = Group("environment", "environments", "presage_gui.environment:Environment")
AGENTS = Group("agent", "agents", "presage_gui.agent:Agent")
CRITICS = Group("critic", "critics", "presage_gui.critic:Critic")


def make(group: Group, spec: str, *arguments: Any) -> Any:
    """Make a new part from `NAME`, `NAME:WHAT` (such as `miniwob:click-test`) or `NAME:SETTING=VALUE,…`.

    If both are given, WHAT comes before the settings. WHAT and `arguments` are passed as positional arguments."""
    name, _, rest = spec.partition(":")
    part = group.load(name)
    if hasattr(part, "from_text"):  # such as blend:A,B
        with group.blamed(name, "cannot be made"):
            return part.from_text(rest, lambda member: make(group, member, *arguments))
    what, _, settings = rest.partition(",")
    if what and "=" not in what:
        return group.make(f"{name}:{settings}" if settings else name, what, *arguments)
    return group.make(spec, *arguments)
