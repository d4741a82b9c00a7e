"""A refusal is an error to the user of an SDK: raised soon, without a storm, and never a success."""

import time

from record import same

# What an SDK may spend on one.
SECONDS = 15


def refused(gateway, action, error, most):
    """The error that `action` raises, having sent `most` requests at most."""
    before, start = gateway.requests(), time.monotonic()
    try:
        got = action()
    except error as raised:
        bounded(gateway, before, start, most)
        return raised
    raise AssertionError(f"a refusal came out as a success: {got}")


def refused_to_write(writer, gateway, key, **changes):
    """What the SDK's user gets to know of it."""
    return writer.about(refused(gateway, lambda: writer.send(key, **changes), writer.error, 1 + writer.retries))


def tells(error, status, code):
    """Which refusal it is: a status stands for several."""
    same(error.status, status, "its status")
    assert f"{code}: " in error.message, f"not {code}: {error}"


def bounded(gateway, before, start, most):
    sent, seconds = gateway.requests() - before, time.monotonic() - start
    assert sent <= most, f"{sent} requests for one question"
    assert seconds < SECONDS, f"{seconds:.0f} s until it gave up"
