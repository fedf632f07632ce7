"""Configuration: the settings of a run with their defaults, and the check whether an existing run can resume with
them."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.devices import registry as devices
from presage.devices.recorded import RecordedDevice
from presage.forecasters import learned
from presage.kernels.kernel import split_spec
from presage.plugins.group import ACQUISITIONS, POLICIES, PROPOSERS, STRATEGIES
from presage.policies import registry as policies
from presage.problems import registry as problems
from presage.problems.external import ExternalProblem
from presage.searches import acquisition as acquisitions
from presage.searches import registry as strategies
from presage.searches.budget import Budget

RUNS = Path("presage-runs")
"""The default folder for runs, in the current working directory."""
NO_FORECASTER = "none"
NO_POLICY = "always"
"""The policy of a search without a forecaster."""
LIMITS = ("budget", "device_seconds", "wall", "tokens", "dollars")
"""The settings that can be increased when a run resumes, in the order of the fields of Budget."""
UNTIL = 0.05
"""The default of `until` if the user limits neither measurements nor time."""
_BATCH = {"knobs": 32, "pool": 256, "llm": 8}
"""Candidates per step for each proposer: as many as can be compiled (knobs), come with recorded static reports (pool),
or can be paid for (llm)."""
_BATCH_MEASURED = 4
"""Candidates per step if every candidate is measured."""
_WHOLE = ("budget", "tokens", "batch", "seed")
_NUMBERS = ("device_seconds", "wall", "dollars", "alpha", "delta", "until", "seconds")
_LONGEST_PART = 80
"""The most bytes for each part of the run folder's name."""


@dataclass(frozen=True)
class Configuration:
    """The settings of a run. A run's folder accepts no other settings later. None stands for the default. Each part is
    a text: a name, optionally with settings, as in `topk:k=4`, or the description of an object."""

    problem: str
    kernels: list[str] | None = None
    """Kernel files to search in addition to the problem's own families."""
    only: bool = False
    """Whether to search `kernels` instead of the problem's own families."""
    device: str | None = None
    forecaster: str | None = None
    policy: str | None = None
    strategy: str = strategies.DEFAULT
    acquisition: str | None = None
    proposer: str | None = None
    anchor: str | None = None
    """The kernel that speedups are relative to, by path or name."""
    budget: int | None = 64
    """The most measurements."""
    device_seconds: float | None = None
    """The most time on the device, in seconds."""
    wall: float | None = None
    """The most wall time, in seconds, over all processes of the run."""
    tokens: int | None = None
    dollars: float | None = None
    alpha: float | None = None
    """Shorthand for the policy's setting of this name, as in `risk:alpha=0.1`. `complete` moves it into `policy` and
    sets this field to None."""
    delta: float | None = None
    """As `alpha`."""
    until: float | None = None
    """The search ends early when it is improbable that any remaining kernel is faster than the best by more than this
    share. None: it continues until the budget is spent."""
    rehearse: bool = False
    """Whether candidates run on the CPU first, on small inputs. Those with a wrong result are not measured."""
    seconds: float | None = None
    """The longest time to time one case of a kernel, in seconds. None: 1, and 3 for the anchor and the finalists."""
    batch: int | None = None
    """How many candidates a step proposes."""
    seed: int = 0

    @property
    def limits(self) -> Budget:
        """The budget that these settings give."""
        return limits_of(vars(self))

    @property
    def folder(self) -> Path:
        """The default folder of the run, named after the problem, the first kernel, the device and the seed."""
        device = _without_address(self.device or "").removesuffix(".parquet").replace(":", "/").strip("/").split("/")
        kernels = [Path(split_spec(kernel)[0]).stem for kernel in self.kernels or () if kernel != self.problem]
        parts = (Path(self.problem).stem, *kernels[:1], *device[:1], *device[1:][-1:], str(self.seed))
        return RUNS / "-".join(os.fsdecode(os.fsencode(part)[:_LONGEST_PART]) for part in parts)

    def complete(self, objects: Mapping[str, Any] | None = None) -> Configuration:
        """Return the configuration with every default filled in, every name checked, and each part's settings in the
        text of that part.

        objects: the objects that the user passed in place of names; this configuration holds their descriptions.

        Raises PresageError for unknown names, invalid values, and combinations that cannot work."""
        given = objects or {}
        self._check_values()
        device = self.device or self._default_device(given)
        is_recorded = isinstance(given.get("device"), RecordedDevice) or device.startswith("recorded:")
        proposer = self.proposer or self._default_proposer(is_recorded)
        self._refuse_unrecorded(device, is_recorded)
        self._refuse_unfit(proposer, given.get("proposer"), device, is_recorded)
        forecaster = self.forecaster or self._default_forecaster(device, is_recorded, given)
        policy = self.policy or (NO_POLICY if forecaster == NO_FORECASTER else policies.DEFAULT)
        measures_all = policy == NO_POLICY or forecaster == NO_FORECASTER
        batch = _BATCH_MEASURED if measures_all else _BATCH.get(_name(proposer), _BATCH["knobs"])
        completed = replace(
            self, device=device, proposer=proposer, forecaster=forecaster, policy=policy, batch=self.batch or batch,
            acquisition=self.acquisition or acquisitions.DEFAULT,
        )._canonical(given)  # fmt: skip
        completed.limits  # noqa: B018  a budget that cannot be is refused here
        return completed

    def _check_values(self) -> None:
        """Raise PresageError for a value that no search can have."""
        if not self.problem.strip():
            raise PresageError("name a problem: 'presage problems' lists the catalogue's")
        self._check_numbers()
        if self.until is not None and not 0 <= self.until < 1:
            raise PresageError(
                "until, the share by which nothing left is likely to be faster, is 0 or more and less than 1 (0.05 is"
                f" 5 %), not {self.until:g}"
            )
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise PresageError(f"a case is timed for more than 0 seconds, not {self.seconds}")
        if self.batch is not None and self.batch < 1:
            raise PresageError(f"a step proposes 1 candidate or more, not {self.batch}")

    def _check_numbers(self) -> None:
        for names, wanted, kinds in ((_WHOLE, "a whole number", int), (_NUMBERS, "a number", (int, float))):
            for name in names:
                value = getattr(self, name)
                is_unset = value is None and name != "seed"
                if not is_unset and (isinstance(value, bool) or not isinstance(value, kinds)):
                    raise PresageError(f"{name} must be {wanted}, not {value!r:.80}")

    @property
    def _is_file(self) -> bool:
        """Whether the problem is given as a file or a folder."""
        return self.problem not in problems.names() and problems.is_path(self.problem)

    @property
    def _is_module(self) -> bool:
        """Whether the problem is a file or folder whose kernels are Python modules."""
        return self._is_file and not problems.is_kernel_file(self.problem)

    def _default_device(self, objects: Mapping[str, Any]) -> str:
        """A device that can run the problem and the kernels. If the user names no files of their own, the first
        available device, which may be a recorded one."""
        problem = objects["problem"] if "problem" in objects else problems.get(self.problem) if self._is_file else None
        if self.kernels:
            problem = problem or problems.get(self.problem)
            languages = {problems.find_family(problem, split_spec(each)[0]).language for each in self.kernels}
            return "cpu" if devices.default(languages) == "cpu" else "cuda"
        if isinstance(problem, ExternalProblem):
            return devices.default({"torch"})
        return devices.default()

    def _default_proposer(self, is_recorded: bool) -> str:
        if is_recorded:
            return "pool"
        return "llm" if self._is_module and not self.kernels else "knobs"

    def _refuse_unrecorded(self, device: str, is_recorded: bool) -> None:
        """Raise PresageError if the user's own files are to be measured on a recorded device."""
        what = "kernels of your own" if self.kernels else self.problem if self._is_file else ""
        if is_recorded and what:
            raise PresageError(
                f"{device} can measure only what was recorded, and not {what}; name a device that can run it: --device"
                " cuda, or --device cpu"
            )

    def _refuse_unfit(self, proposer: str, given: Any, device: str, is_recorded: bool) -> None:
        """Raise PresageError for a proposer that cannot work here. given: the object, if `proposer` describes one."""
        if given is not None:
            if is_recorded and not _may_draw(given):
                raise PresageError(
                    f"{device} can measure only what was recorded, and {proposer} writes kernels; leave out the"
                    " proposer, or set is_list = True in its class if it draws from the device's pool"
                )
            return
        if self.kernels and _name(proposer) != "knobs":
            raise PresageError(
                f"kernels that are named are searched by knobs; leave out --proposer {proposer}, or write"
                f" --anchor {self.kernels[0]} to have it start from that one"
            )
        if is_recorded and proposer != "pool":
            raise PresageError(f"{device} can measure only what was recorded; leave out --proposer, or write 'pool'")
        PROPOSERS.load(_name(proposer))

    def _default_forecaster(self, device: str, is_recorded: bool, objects: Mapping[str, Any]) -> str:
        """`learned`, if its model is installed and covers the problem; it covers modules on a GPU only. Else, on a
        recorded device, `surrogate`, which learns from the search's measurements alone. Else none."""
        is_cpu = objects["device"].kind == "cpu" if "device" in objects else _is_cpu(device)
        name = objects["problem"].name if "problem" in objects else self.problem
        has_model = (learned.installed() / f"{'cpu' if is_cpu else 'compiled'}.json").exists()
        knows = name in problems.names() or (self._is_file and not (is_cpu and self._is_module))
        if knows and has_model:
            return "learned"
        return "surrogate" if is_recorded else NO_FORECASTER

    def _canonical(self, objects: Mapping[str, Any]) -> Configuration:
        """Return the configuration with the text of each part in canonical form."""
        short = {name: value for name in ("alpha", "delta") if (value := getattr(self, name)) is not None}
        if short and "policy" in objects:
            raise PresageError(f"{' and '.join(short)} are settings of a policy that is named; the object has its own")
        texts: dict[str, Any] = {
            name: group.canonical(str(getattr(self, name)), **(short if name == "policy" else {}))
            for name, group in (("policy", POLICIES), ("strategy", STRATEGIES), ("acquisition", ACQUISITIONS))
            if name not in objects
        }
        return replace(self, alpha=None, delta=None, **texts)

    def refuse_idle(self, completed: Configuration) -> None:
        """Raise PresageError if a setting that the user chose has no effect in the completed configuration."""
        if completed.forecaster != NO_FORECASTER:
            return
        if self.policy and completed.policy != NO_POLICY:
            raise PresageError(
                f"without a forecaster everything is measured, and the policy {self.policy} has nothing to decide on;"
                " leave out --policy, or name a forecaster with --forecaster"
            )
        if self.acquisition:
            raise PresageError(
                f"without a forecaster nothing is scored, and the acquisition {self.acquisition} changes nothing; leave"
                " out --acquisition, or name a forecaster with --forecaster"
            )
        if self.until is not None:
            raise PresageError(
                "without a forecaster nothing says what is left, and --until changes nothing; leave it out, or name a"
                " forecaster with --forecaster"
            )


def with_until(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Add the default of `until` to the settings, unless the user set `until` or limited measurements or time."""
    has_end = "budget" in settings or any(settings.get(name) is not None for name in ("device_seconds", "wall"))
    until = settings.get("until")
    return {**settings, "until": UNTIL if until is None and not has_end else until}


def limits_of(stored: Mapping[str, Any]) -> Budget:
    """The budget of a stored configuration, also one of an older version."""
    return Budget(*(stored.get(name) for name in LIMITS))


def extend(was: Mapping[str, Any], now: Configuration, folder: Path) -> dict[str, Any]:
    """Return the limits, and `until`, that let a run go on for longer than before, by name.

    was: the stored configuration. now: the requested one. folder: the run's folder, for the message.

    Raises PresageError if any other setting differs, or if a limit is smaller than before."""
    before, after = modern(was), asdict(now)
    if _without_address(before["device"] or "") == _without_address(now.device or ""):
        before["device"] = now.device  # the address of a Ray cluster may change
    larger = {}
    differences = []
    for name in (name for name in after if name in before and before[name] != after[name]):
        if name == "until":
            is_more = now.until is None or (before[name] is not None and now.until < before[name])
        else:
            is_more = name in LIMITS and _is_more(before[name], after[name])
        if is_more:
            larger[name] = after[name]
        else:
            differences.append(f"{name} was {_said(name, before[name])}, is {_said(name, after[name])}")
    if not differences:
        return larger
    why = f"{folder} holds a run with another configuration: {'; '.join(differences)}."
    if all(difference.startswith((*LIMITS, "until")) for difference in differences):
        why += " A run can be given a larger budget, not a smaller one."
    if any("<" in difference for difference in differences):
        why += " A run that was begun with an object goes on with an object like it."
    raise PresageError(f"{why} Ask as before to go on with it, or name another folder with --run")


def modern(was: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a stored configuration of an older version to the current form. Older versions had a single acquisition,
    stored alpha and delta separately for every run although only `risk` used them, and had `early_stop` as a flag."""
    short = {name: was[name] for name in ("alpha", "delta") if was.get(name) is not None}
    policy = POLICIES.canonical(was["policy"], **short) if short and was["policy"] == "risk" else was["policy"]
    now = {
        "acquisition": acquisitions.DEFAULT,
        "kernels": None,
        "only": False,
        "rehearse": False,
        "seconds": None,
        **was,
        "policy": policy,
        "alpha": None,
        "delta": None,
    }
    if "early_stop" in now:
        now["until"] = UNTIL if now.pop("early_stop") else None
    return now


def _without_address(device: str) -> str:
    """
    >>> _without_address("ray:cuda@10.0.0.1:6379,only=H200")
    'ray:cuda,only=H200'
    """
    return re.sub(r"@[^,]*", "", device) if device.startswith("ray:") else device


def _is_cpu(device: str) -> bool:
    """
    >>> [_is_cpu(device) for device in ("cpu", "recorded:cpu", "ray:cpu,workers=2", "ray", "cuda")]
    [True, True, True, False, False]
    """
    return re.split("[,:]", _without_address(device).removeprefix("recorded:").removeprefix("ray:"))[0] == "cpu"


def _may_draw(proposer: Any) -> bool:
    """Whether a proposer may draw from a recording. This is not known of a function that makes one."""
    while isinstance(proposer, functools.partial):
        proposer = proposer.func
    return bool(getattr(proposer, "is_list", True))


def _is_more(before: float | None, after: float | None) -> bool:
    return after is None or (before is not None and after > before)


def _said(name: str, value: object) -> str:
    unlimited = dict.fromkeys(LIMITS, "unlimited") | {"until": "the end of the budget"}
    return unlimited.get(name, "None") if value is None else str(value)


def _name(spec: str) -> str:
    return spec.partition(":")[0]
