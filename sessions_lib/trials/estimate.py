"""What a trial will probably take before it is asked: requests, tokens and money, from what the session took so far.

A guess that says it is one: a repeat is taken to send the history once and to answer as long as the answers before.
"""

from __future__ import annotations

from statistics import median

from sessions_lib import prices, text
from sessions_lib.messages import usage
from sessions_lib.store.session import Session
from sessions_lib.trials.trial import Trial, Variant


def sentence(trial: Trial) -> str:
    """``30 requests at least, probably about $0.42 (…)``; what is not known is said to be."""
    requests = text.count(trial.requests(), "request")
    waiting = [variant for variant, _ in trial.open_repeats()]
    each = {variant.name: _of_one(trial, variant) for variant in trial.variants}
    known = [found for variant in waiting if (found := each[variant.name]) is not None]
    if len(known) < len(waiting) or not known:
        return f"{requests} at least; what they cost is not known before: no answer here has reported its tokens."
    costs = [
        prices.cost({"prompt_tokens": sent, "completion_tokens": got}, model, None, url)
        for sent, got, model, url in known
    ]
    about = (
        f"about {text.count(sum(sent for sent, *_ in known), 'token')} in and {sum(got for _, got, *_ in known):,} out"
    )
    if all(cost.state == "unmetered" for cost in costs):
        return f"{requests} at least, {about}, unmetered."
    if any(cost.state == "unpriced" for cost in costs):
        names = ", ".join(dict.fromkeys(cost.matched for cost in costs if cost.state == "unpriced"))
        return f"{requests} at least, {about}; {names} has no price."
    amount = sum(cost.amount or 0 for cost in costs)
    return f"{requests} at least, probably about {text.money(amount)} ({about})."


def _of_one(trial: Trial, variant: Variant) -> tuple[int, int, str, str | None] | None:
    """Tokens in and out, model and address of one repeat; ``None`` where nothing tells."""
    session = Session.open(trial.store, variant.session or trial.session_id)
    begin = trial.start_of(variant, session).at
    spent = [found for message in session.messages[:begin] if (found := usage.of(message)) is not None]
    totals = [(found.input, found.output) for found in spent if found.input is not None and found.output is not None]
    if not totals:
        return None
    length = totals[-1][0] + totals[-1][1]
    answer = round(median(output for _, output in totals))
    times = max(1, len(trial.prompts))
    sent = sum(length + turn * answer for turn in range(times))
    answered = next((one for message in reversed(session.messages[:begin]) if (one := message.get("model"))), "")
    model = variant.model or str(session.meta.get("model") or answered)
    return sent, answer * times, model, variant.base_url or session.meta.get("base_url")
