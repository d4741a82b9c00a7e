"""Every refusal of a write is an error to the SDK's user, and nothing is sent. A check's name ends with the SDK's."""

from functools import partial

import config
import writers
from record import same
from refusal import refused_to_write as refused
from refusal import tells
from writers import Done, fresh


def refuses(record, gateway, sandbox):
    strangers = writers.all_of(gateway.port, "sk_test_NobodyHasThisKey")
    for writer, stranger in zip(writers.all_of(gateway.port), strangers, strict=True):

        def refuses(status, code, key=None, who=writer, **changes):
            tells(refused(who, gateway, key or fresh(), **changes), status, code)
            same(sandbox.calls(), 0, "calls")

        record.check(f"a wrong key is an error: {writer}", partial(refuses, 401, "unauthenticated", who=stranger))
        record.check(f"a question refused is an error: {writer}", partial(refuses, 400, "invalid_question", **writer.invalid))
        record.check(f"what is too dear is an error: {writer}", partial(refuses, 400, "cost_too_high", **writer.dear))
        none = partial(refuses, 400, "idempotency_key_invalid", key="k" * 256)
        record.check(f"an Idempotency-Key that is none is an error: {writer}", none)


def refuses_when_switched(record, gateway, sandbox):
    for writer in writers.all_of(gateway.port):

        def switched(state, status, code, replays):
            key = fresh()
            first = writer.send(key)
            gateway.switch(writer.route, state)
            try:
                tells(refused(writer, gateway, fresh()), status, code)
                if replays:
                    same(writer.send(key), Done(first.number, True), "what was there before")
                else:
                    tells(refused(writer, gateway, key), status, code)
            finally:
                gateway.switch(writer.route, "on")
            same(writer.send(key), Done(first.number, True), "what was there before, once it is on")
            same(sandbox.calls(), 1, "calls")

        record.check(f"switched off is an error: {writer}", partial(switched, "off", 403, "switched_off", False))
        replays_only = partial(switched, "cached", 502, "not_cached", True)
        record.check(f"switched to replays only is an error: {writer}", replays_only)


def refuses_after_the_provider(record, gateway, sandbox):
    for writer in writers.all_of(gateway.port):

        def rejected():
            key, says = fresh(), writer.rejection
            with sandbox.trouble(writer.provider, calls=[1], **says):
                first = refused(writer, gateway, key)
                same((first.status, first.code), (says["status"], writer.rejection_code), "what the provider says")
                same(refused(writer, gateway, key), first, "what it has said")
            same(sandbox.calls(), 1, "calls")

        def denied():
            key = fresh()
            with sandbox.trouble(writer.provider, status=401):
                tells(refused(writer, gateway, key), 502, "upstream_denied")
                same(sandbox.calls(), 1, "calls")
            same(writer.send(key).replayed, False, "replayed, once our credential is right")

        record.check(f"what the provider rejects is its own error, and again: {writer}", rejected)
        record.check(f"a credential of ours that is refused is an error: {writer}", denied)


def refuses_over_the_limit(record, gateway, sandbox):
    for writer in [*writers.all_of(gateway.port), writers.TwilioNodeRetrying(gateway.port)]:

        def over_limit():
            writer.send(fresh())
            tells(refused(writer, gateway, fresh()), 429, "slow_down")
            same(sandbox.calls(), 1, "calls")

        record.check(f"over the limit is an error: {writer}", over_limit)


def refuses_over_the_budget(record, gateway, sandbox):
    for writer in writers.all_of(gateway.port):

        def no_money():
            writer.send(fresh())
            tells(refused(writer, gateway, fresh()), 403, "budget_exhausted")
            same(sandbox.calls(), 1, "calls")

        record.check(f"a budget used up is an error: {writer}", no_money)


def refuses_when_open(record, gateway, sandbox):
    for provider in ("twilio", "stripe"):
        pair = [writer for writer in writers.all_of(gateway.port) if writer.provider == provider]
        with sandbox.trouble(provider, status=503):
            refused(pair[0], gateway, fresh())
        for writer in pair:

            def circuit_open():
                tells(refused(writer, gateway, fresh()), 502, "circuit_open")
                same(sandbox.calls(), 0, "calls")

            record.check(f"an open circuit is an error: {writer}", circuit_open)


def refuses_without_the_store(record, gateway, sandbox):
    for writer in writers.all_of(gateway.port):

        def works():
            key = fresh()
            first = writer.send(key)
            same(writer.send(key), Done(first.number, True), "the same again")

        record.check(f"the store remembers what was sent: {writer}", works)
    gateway.stop_redis()
    for writer in writers.all_of(gateway.port):

        def away():
            tells(refused(writer, gateway, fresh()), 502, "store_unavailable")
            same(sandbox.calls(), 0, "calls")

        record.check(f"a store that is away is an error: {writer}", away)


GROUPS = [
    ("writes refused", config.writes, refuses),
    ("writes, switches", config.writes, refuses_when_switched),
    ("writes, the provider's no", config.writes, refuses_after_the_provider),
    ("writes, limits", partial(config.writes, burst=1), refuses_over_the_limit),
    ("writes, budget", partial(config.writes, one_call=True), refuses_over_the_budget),
    ("writes, breaker", partial(config.writes, failures=1), refuses_when_open),
    ("writes, no store", partial(config.writes, store="{redis}"), refuses_without_the_store),
]
