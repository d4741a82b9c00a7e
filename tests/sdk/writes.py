"""What must hold for each SDK that writes: one send for each intention. A check's name ends with the SDK's."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import config
import writers
from record import same
from refusal import refused_to_write as refused
from refusal import tells
from writers import Done, fresh


def sends(record, gateway, sandbox):
    for writer in [*writers.all_of(gateway.port), writers.StripeModule(gateway.port)]:

        def once():
            key, spent = fresh(), gateway.spent()
            first = writer.send(key)
            same(first.replayed, False, "replayed")
            same(writer.send(key), Done(first.number, True), "the same again")
            same(sandbox.calls(), 1, "calls for one intention")
            same(writer.send(fresh()), Done(first.number + 1, False), "another intention")
            same((sandbox.calls(), gateway.spent() - spent), (2, 2 * writer.price), "calls and money for two")

        def used():
            key = fresh()
            first = writer.send(key)
            error = refused(writer, gateway, key, **writer.other)
            tells(error, 400 if writer.retries else 422, "idempotency_key_reused")
            assert "Idempotency" in error.type or not writer.retries, error
            same(writer.send(key), Done(first.number, True), "the first")
            same(sandbox.calls(), 1, "calls for one intention")

        def in_use():
            key = fresh()
            # What tries again does so for a second at least.
            with being_sent(writer, sandbox, key, "400ms" if writer.retries else "1500ms") as first:
                if writer.retries:
                    same(writer.send(key), Done(first.result().number, True), "what its own retries end with")
                else:
                    tells(refused(writer, gateway, key), 409, "idempotency_in_progress")
            same(writer.send(key), Done(first.result().number, True), "the same, once it is there")
            same(sandbox.calls(), 1, "calls for one intention")

        record.check(f"sent once, then replayed: {writer}", once)
        record.check(f"a key used for something else is an error: {writer}", used)
        record.check(f"a key in use is {'tried again' if writer.retries else 'an error'}: {writer}", in_use)


def needs_a_key(record, gateway, sandbox):
    for writer in writers.twilios(gateway.port):

        def missing():
            error = refused(writer, gateway, None)
            tells(error, 400, "idempotency_key_missing")
            same((error.code, sandbox.calls()), (20400, 0), "its code, and calls")

        record.check(f"no key is an error: {writer}", missing)

    for writer in writers.stripes(gateway.port):

        def its_own():
            first = writer.send()
            same(writer.send(), Done(first.number + 1, False), "the second")
            with sandbox.trouble(writer.provider, calls=[1], close=True):
                same(writer.send().number, first.number + 2, "one that it has sent twice")
            same(writer.send(), Done(first.number + 3, False), "the next")
            same(sandbox.calls(), 5, "calls, one of them again")

        record.check(f"a key of its own is another each time: {writer}", its_own)


def may_have_a_key(record, gateway, sandbox):
    for writer in writers.twilios(gateway.port):

        def missing():
            first, key = writer.send(), fresh()
            same(writer.send(), Done(first.number + 1, False), "the second")
            same(writer.send(key), Done(first.number + 2, False), "one with a key")
            same(writer.send(key), Done(first.number + 2, True), "the same again")
            same(sandbox.calls(), 3, "calls for three messages")

        record.check(f"no key sends each time: {writer}", missing)


def goes_by_the_question(record, gateway, sandbox):
    for writer in writers.twilios(gateway.port):

        def double_click():
            with being_sent(writer, sandbox, None, "1500ms") as first:
                tells(refused(writer, gateway, None), 409, "idempotency_in_progress")
            same(writer.send(), Done(first.result().number, True), "the third click")
            same(sandbox.calls(), 1, "calls for one message")
            same(writer.send(**writer.other), Done(first.result().number + 1, False), "another message")

        record.check(f"a double click is one message: {writer}", double_click)


def stops_waiting(record, gateway, sandbox):
    """Whoever hangs up ends nothing: what is being sent is there for whoever comes with its key."""
    for hasty, writer in zip(writers.all_of(gateway.port, None, 0.5), writers.all_of(gateway.port), strict=True):

        def hangs_up():
            first, key = writer.send(fresh()), fresh()
            with sandbox.trouble(writer.provider, delay="900ms"):
                if writer.retries:
                    done = hasty.send(key)
                else:
                    error = refused(hasty, gateway, key)
                    assert "Timeout" in error.type or error.code == "ECONNABORTED", error
                    done = insist(writer, key)
            same(done, Done(first.number + 1, True), "what it ends with")
            same(sandbox.calls(), 2, "calls for two intentions")

        record.check(f"who has stopped waiting finds what was done: {writer}", hangs_up)


@contextmanager
def being_sent(writer, sandbox, key, delay):
    """While the provider is at it."""
    with sandbox.trouble(writer.provider, delay=delay), ThreadPoolExecutor() as pool:
        first = pool.submit(writer.send, key)
        while not sandbox.calls():
            assert not first.done(), first.result()
        yield first


def insist(writer, key):
    """Again, for as long as the first is being answered."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            return writer.send(key)
        except writer.error as error:
            same(writer.about(error).status, 409, "its status")
        time.sleep(0.1)
    raise AssertionError("the first is never answered")


GROUPS = [
    ("writes", config.writes, sends),
    ("writes, keys required", config.writes, needs_a_key),
    ("writes, keys optional", partial(config.writes, key="optional"), may_have_a_key),
    ("writes, keys from the question", partial(config.writes, key="question"), goes_by_the_question),
    ("writes, callers that stop waiting", config.writes, stops_waiting),
]
