"""What becomes of a write when its provider is busy, cut off, silent or out of its mind. A check's name ends with the SDK's."""

from functools import partial

import config
import writers
from record import same
from refusal import refused_to_write as refused
from refusal import tells
from writers import Done, fresh

# What may become of a call that the provider has acted on.
UNCLEAR = {
    "is closed": {"close": True},
    "is reset": {"reset": True},
    "is cut off": {"cut": 20},
    "is not answered": {"hang": True},
    "gets a page": {"malformed": "html"},
    "gets a 500": {"status": 500},
}


def tries_again(record, gateway, sandbox):
    """What cannot have been done, and of the rest what the provider knows by our key."""
    for writer in writers.all_of(gateway.port):

        def busy():
            first, spent = writer.send(fresh()), gateway.spent()
            with sandbox.trouble(writer.provider, calls=[1], status=429):
                same(writer.send(fresh()), Done(first.number + 1, False), "what it ends with")
            same((sandbox.calls(), gateway.spent() - spent), (3, writer.price), "calls, and what the second cost")

        record.check(f"a provider that is busy is asked again: {writer}", busy)
    unclear(record, gateway, sandbox)


def lets_them_try_again(record, gateway, sandbox):
    """The same where the gateway makes one attempt a request."""
    for writer in [*writers.all_of(gateway.port), writers.TwilioNodeRetrying(gateway.port)]:

        def busy():
            key, first, spent = fresh(), writer.send(fresh()), gateway.spent()
            with sandbox.trouble(writer.provider, calls=[1], status=429):
                if not writer.retries:
                    tells(refused(writer, gateway, key), 429, "upstream_busy")
                same(writer.send(key), Done(first.number + 1, False), "what it ends with")
            same((sandbox.calls(), gateway.spent() - spent), (3, writer.price), "calls, and what the second cost")

        record.check(f"a provider that is busy is for the caller to ask again: {writer}", busy)
    unclear(record, gateway, sandbox)


def unclear(record, gateway, sandbox):
    def known(writer, fault):
        first, spent, key = writer.send(fresh()), gateway.spent(), fresh()
        with sandbox.trouble(writer.provider, calls=[1], **fault):
            same(writer.send(key).number, first.number + 1, "what it ends with")
        same(writer.send(key), Done(first.number + 1, True), "the same again")
        same((sandbox.calls(), gateway.spent() - spent), (3, writer.price), "calls, and what the second cost")
        same(writer.send(fresh()).number, first.number + 2, "the next")

    def unknown(writer, fault):
        key, spent = fresh(), gateway.spent()
        with sandbox.trouble(writer.provider, calls=[1], **fault):
            error = refused(writer, gateway, key)
            # What was too late to be sent is an error as well, and frees the key.
            tells(error, 504 if error.status == 504 else 502, "outcome_unknown")
            same(sandbox.calls(), 1, "calls of which nobody knows")
        tells(refused(writer, gateway, key), 409, "outcome_unknown")
        same((sandbox.calls(), gateway.spent() - spent), (1, writer.price), "calls, and what stays spent")

    for what, fault in UNCLEAR.items():
        for writer in writers.stripes(gateway.port):
            record.check(f"a call that {what} ends in one object: {writer}", partial(known, writer, fault))
        for writer in writers.twilios(gateway.port):
            record.check(f"a call that {what} is an error, and not sent again: {writer}", partial(unknown, writer, fault))


GROUPS = [
    ("writes, a provider in trouble", partial(config.writes, timeout="3s"), tries_again),
    ("writes, a provider in trouble, one attempt a request", partial(config.writes, timeout="3s", attempts=1), lets_them_try_again),
]
