"""Check a policy: it must give one decision per forecast, trust no candidate without a forecast, and decide the same
after it was rebuilt."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence

from presage.authoring.finding import BrokenRuleError, Finding, Verdict, apply, failed
from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.plugins.group import settings_of
from presage.policies.base import Action, Decision, Policy, Standing

Make = Callable[..., Policy]
_STANDINGS = (Standing(0.0, 1, 63), Standing(1.0, 20, 44), Standing(2.5, 63, 1), Standing(0.5, 40, None))
_BATCHES = 12
_IMPOSSIBLE = (math.nan, -1e9)


def check(make: Make) -> Iterator[Finding]:
    """Apply each rule and yield the findings. `make` is a policy class, or a function without arguments that makes a
    policy."""
    for name, rule in (
        ("decisions", _decisions),
        ("no forecast", _no_forecast),
        ("chance", _chance),
        ("restart", _restart),
        ("settings", _settings),
    ):
        findings = list(apply(name, lambda rule=rule: rule(make), make))  # type: ignore[misc]
        yield from findings
        if name == "decisions" and any(finding.verdict is Verdict.FAILED for finding in findings):
            return


def failures(make: Make) -> list[str]:
    """The failures of a policy, one line each; empty if there are none."""
    return failed(check(make))


def _forecasts(seed: int, count: int = 8) -> list[Forecast]:
    """Forecasts of all kinds: certain and uncertain, of failures and of speedups."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        middle, width = rng.uniform(-3, 3), rng.choice((0.01, 0.3, 1.0, 4.0))
        values = [middle - width, middle, middle + width]
        made.append(Forecast.from_quantiles([0.1, 0.5, 0.9], values, rng.choice((0.0, 0.02, 0.5, 0.98, 1.0))))
    return made


def _decide(
    policy: Policy, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random
) -> list[Decision]:
    """Return the decisions. Raises BrokenRuleError unless there is one valid decision per forecast."""
    said = policy.decide(forecasts, standing, rng)
    if not isinstance(said, list) or len(said) != len(forecasts):
        got = f"{len(said)} decisions" if hasattr(said, "__len__") else f"a {type(said).__name__}"
        raise BrokenRuleError(f"it gave {got} for {len(forecasts)} forecasts; return a list with one for each")
    for decision in said:
        if not isinstance(decision, Decision) or not isinstance(decision.action, Action):
            raise BrokenRuleError(f"it gave {decision!r}; return Decision(Action.TRUST, 'why'), or MEASURE, or AUDIT")
        if not decision.reason.strip():
            raise BrokenRuleError(f"a decision to {decision.action} has no reason; say why, for people")
    return said


def _decisions(make: Make) -> Iterator[Finding]:
    counts = dict.fromkeys(Action, 0)
    for seed, standing in enumerate(_STANDINGS):
        policy = make()
        _decide(policy, [], standing, random.Random(seed))
        for count in (1, 8, 64):
            for decision in _decide(policy, _forecasts(seed, count), standing, random.Random(seed)):
                counts[decision.action] += 1
    said = ", ".join(f"{count} {action}" for action, count in counts.items())
    never = not counts[Action.MEASURE]
    verdict = Verdict.WARNING if never else Verdict.OK
    yield Finding("decisions", verdict, said + ("; it never measures, so a search finds nothing" if never else ""))


def _no_forecast(make: Make) -> str:
    mixed: list[Forecast | None] = [None, *_forecasts(1, 4), None, None]
    for forecasts in ([None], [None] * 5, mixed):
        for standing in _STANDINGS:
            decided = _decide(make(), forecasts, standing, random.Random(0))
            for forecast, decision in zip(forecasts, decided, strict=True):
                if forecast is None and decision.action is not Action.MEASURE:
                    raise BrokenRuleError(f"it would {decision.action} a kernel without a forecast; measure it")
    return "a kernel without a forecast is measured"


def _observed(policy: Policy, forecast: Forecast, decision: Decision, standing: Standing, rng: random.Random) -> None:
    log2_S = None if rng.random() < 0.2 else forecast.quantile(rng.random())
    if decision.action is Action.TRUST:
        policy.observe_trusted(standing.best, log2_S)
    else:
        policy.observe(forecast, decision, standing, log2_S)


def _driven(make: Make, kept: list[list[Decision]] | None) -> tuple[Policy, list[list[Decision]]]:
    """Return a policy after _BATCHES batches, and its decisions. With `kept` decisions, the policy is only told their
    results and does not decide, as when a run resumes."""
    policy, decisions = make(), []
    for batch in range(_BATCHES):
        standing, forecasts = _STANDINGS[batch % len(_STANDINGS)], _forecasts(batch)
        decided = kept[batch] if kept else _decide(policy, forecasts, standing, random.Random(batch))
        outcome = random.Random(f"outcome {batch}")
        for forecast, decision in zip(forecasts, decided, strict=True):
            _observed(policy, forecast, decision, standing, outcome)
        decisions.append(decided)
    return policy, decisions


def _last(policy: Policy) -> list[Decision]:
    return _decide(policy, _forecasts(99, 32), _STANDINGS[0], random.Random(99))


def _chance(make: Make) -> str:
    first, second = (_driven(make, None)[1] for _ in range(2))
    if first != second:
        raise BrokenRuleError("two policies that were told the same decided otherwise; take all chance from `rng`")
    return "all chance comes from rng"


def _restart(make: Make) -> str:
    policy, decisions = _driven(make, None)
    rebuilt, _ = _driven(make, decisions)
    if _last(policy) != _last(rebuilt):
        raise BrokenRuleError(
            "after a restart it decides otherwise: `decide` keeps something that `observe` is not told; learn in"
            " `observe` and `observe_trusted` alone"
        )
    return "told the same again, it decides the same"


def _settings(make: Make) -> Iterator[Finding]:
    numbers = {
        name: parameter.default
        for name, parameter in settings_of(make).items()
        if isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool)
    }
    if not numbers:
        yield Finding("settings", Verdict.OK, "no setting is a number")
    for name, default in numbers.items():
        taken = [
            value for value in _IMPOSSIBLE if _takes(make, name, value if isinstance(default, float) else -(10**9))
        ]
        if taken:
            said = f"{name}={taken[0]:g} is taken; raise PresageError in the constructor for what it cannot be"
            yield Finding("settings", Verdict.WARNING, said)
        else:
            yield Finding("settings", Verdict.OK, f"{name}: a value that cannot be is refused")


def _takes(make: Make, name: str, value: float) -> bool:
    """Whether the constructor accepts a value. Raises BrokenRuleError if it rejects the value with any error other than
    PresageError."""
    try:
        make(**{name: value})
    except PresageError:
        return False
    except Exception as error:
        raised = type(error).__name__
        raise BrokenRuleError(f"{name}={value:g} ends in {raised}: {error}; raise presage.PresageError") from error
    return True
