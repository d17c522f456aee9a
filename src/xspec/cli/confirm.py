"""What a run that costs money will take, told before anything is sent, and the yes that it waits for."""

import sys
from collections.abc import Sequence

from xspec.analysis.plan import Usage
from xspec.cli import YES
from xspec.cli.say import say
from xspec.counted import counted
from xspec.errors import UserError
from xspec.experiment.compile import Compiled
from xspec.experiment.forecast import Forecast, forecast
from xspec.experiment.lock import key_fingerprints
from xspec.spec.config import Price
from xspec.spec.store import Store


def confirm(arms: Sequence[Compiled], store: Store, *, yes: bool) -> None:
    """Returns once the user has agreed, or if there is nothing to agree to. Raises UserError if not.

    Only arms that ask for it (`confirm: true`) and call somebody else's model with trials yet to do are concerned.
    """
    paid = [arm for arm in arms if arm.confirm and any(m.kind == "openai" for m in arm.spec.route.members)]
    if not paid:
        return
    expected = forecast(store, paid)
    if not expected.trials:
        return
    for arm in paid:
        key_fingerprints(arm.spec)  # a missing key is told before anybody is asked
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if not yes and not terminal:
        raise UserError(
            f"nothing was sent: {_size(expected)} want a yes, and there is no terminal to ask; add {YES}"
        )
    say(f"this run will take {_size(expected)}, and more where calls are retried")
    if expected.usage is None:
        say(f"what a trial takes is unknown: {expected.basis}")
    else:
        say(f"by an estimate of {_takes(expected.usage, 1)} a trial: {expected.basis}")
        say(_price(expected.trials, expected.usage, paid[0].price))
    if not yes and not _agreed():
        raise UserError("nothing was sent")


def _size(expected: Forecast) -> str:
    trials = counted(expected.trials, "trial")
    return trials if expected.usage is None else f"{trials}, about {_takes(expected.usage, expected.trials)}"


def _takes(usage: Usage, trials: int) -> str:
    calls, prompt, completion = (
        _count(trials * each) for each in (usage.calls, usage.prompt_tokens, usage.completion_tokens)
    )
    return (
        f"{calls} {'call' if calls == '1' else 'calls'}, {prompt} prompt and {completion} completion tokens"
    )


def _price(trials: int, usage: Usage, price: Price | None) -> str:
    if price is None or price.prompt is None or price.completion is None:
        return "its price: give what a million tokens cost as price.prompt=… price.completion=… and it is worked out"
    total = trials * (usage.prompt_tokens * price.prompt + usage.completion_tokens * price.completion) / 1e6
    return f"its price: about {total:,.2f}, at {price.prompt:g} and {price.completion:g} a million tokens"


def _count(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:,.1f} million"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _agreed() -> bool:
    print("xspec: begin? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
