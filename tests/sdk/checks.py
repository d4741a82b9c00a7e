"""What must hold for each SDK. A check's name ends with the SDK's."""

import time

import clients
from record import near, same

BERLIN, PARIS, MADRID = (52.52, 13.405), (48.8566, 2.3522), (40.4168, -3.7038)
# An SDK may spend this long on a refusal, and send this many requests: one, or three if it obeys Retry-After.
SECONDS = 15
REQUESTS = {False: 1, True: 3}


def works(record, gateway, sandbox):
    for client in clients.all_of(gateway.port):

        def forward():
            near(client.geocode("Berlin, Germany"), BERLIN)

        def reverse():
            address = client.reverse(*BERLIN)
            assert address and "Berlin" in address, f"{address!r} is not in Berlin"

        def nothing_found():
            before = sandbox.calls()
            same(client.geocode("Qzxwv Vrrrmp"), None, "a place of nonsense")
            paid = sandbox.calls()
            same(client.geocode("qzxwv   VRRRMP"), None, "the same, spelled otherwise")
            same(sandbox.calls(), paid, "calls after the second time")
            assert paid - before <= 1, f"{paid - before} calls for one question"

        record.check(f"geocode finds the place: {client}", forward)
        record.check(f"reverse geocode finds the address: {client}", reverse)
        record.check(f"no such place is empty, and paid once: {client}", nothing_found)


def shares(record, gateway, sandbox):
    by_name = {client.name: client for client in clients.all_of(gateway.port)}
    pairs = [("googlemaps", "geopy-google"), ("opencage", "geopy-opencage"), ("geopy-nominatim", "geopy-nominatim")]
    for one, other in [(by_name[one], by_name[other]) for one, other in pairs]:

        def spellings():
            near(one.geocode("Paris, France"), PARIS)
            near(other.geocode("  paris,   FRANCE "), PARIS)
            near(one.geocode("PARIS, France"), PARIS)
            near(other.geocode("Ｐａｒｉｓ, France"), PARIS)
            same(sandbox.calls(), 1, "calls for one question in four spellings")

        def parameters():
            near(one.geocode("Madrid, Spain", language="es"), MADRID)
            near(other.geocode("madrid, spain", language="es"), MADRID)
            same(sandbox.calls(), 1, "calls for one question in one language")
            near(one.geocode("Madrid, Spain", language="fr"), MADRID)
            same(sandbox.calls(), 2, "calls once asked in another language too")

        def points():
            assert one.reverse(48.8566, 2.3522)
            assert other.reverse(48.85660, 2.35220)
            same(sandbox.calls(), 1, "calls for one point")

        record.check(f"spellings share an entry: {one} and {other}", spellings)
        if one is not other:
            record.check(f"parameter orders share an entry, languages do not: {one} and {other}", parameters)
        record.check(f"a point is a point: {one} and {other}", points)


def refuses_callers(record, gateway, sandbox):
    for client in clients.with_wrong_key(gateway.port):

        def wrong_key():
            refused(client, gateway, "Vienna, Austria")
            same(sandbox.calls(), 0, "calls for a caller we do not know")

        record.check(f"a wrong key is an error: {client}", wrong_key)

    for client in (clients.GoogleMaps(gateway.port), clients.OpenCageOwn(gateway.port)):

        def bad_question():
            # Neither SDK looks at this value; both send it.
            refused(client, gateway, "Vienna, Austria", language="not a language!")
            same(sandbox.calls(), 0, "calls for a question we do not understand")

        record.check(f"a question refused is an error: {client}", bad_question)


def refuses_when_switched_off(record, gateway, sandbox):
    for client in clients.all_of(gateway.port):

        def switched_off():
            assert client.geocode("Rome, Italy"), "Rome is there before the switch"
            paid = sandbox.calls()
            gateway.switch(client.route, "off")
            try:
                refused(client, gateway, "Rome, Italy")
                refused(client, gateway, "Oslo, Norway")
            finally:
                gateway.switch(client.route, "on")
            assert client.geocode("Rome, Italy"), "Rome is there after the switch"
            same(sandbox.calls(), paid, "calls since the switch")

        record.check(f"switched off is an error, and on again is not: {client}", switched_off)


def refuses_over_the_limit(record, gateway, sandbox):
    for client in clients.hasty(gateway.port):

        def over_limit():
            assert client.geocode("Berlin, Germany"), "the bucket's one token"
            paid = sandbox.calls()
            refused(client, gateway, "Lisbon, Portugal")
            same(sandbox.calls(), paid, "calls after the refusal")

        record.check(f"over the limit is an error: {client}", over_limit)


def waits_as_told(record, gateway, sandbox):
    for client in clients.patient(gateway.port):

        def waits():
            assert client.geocode("Berlin, Germany"), "the bucket's one token"
            before, start = gateway.requests(), time.monotonic()
            try:
                # A wait that we named and that it kept ends in the answer; giving up is as good.
                assert client.geocode("Tokyo, Japan"), "over the limit came out as an empty success"
            except client.error:
                pass
            bounded(client, gateway, before, start)

        record.check(f"over the limit is a wait or an error: {client}", waits)


def refuses_when_open(record, gateway, sandbox):
    # A question a client: two of them share a provider, so what one was answered is a hit for the other.
    questions = ["Madrid, Spain", "Stockholm, Sweden", "Brussels, Belgium", "Budapest, Hungary", "Nairobi, Kenya"]
    for client, question in zip(clients.hasty(gateway.port), questions, strict=True):

        def circuit_open():
            sandbox.fault(client.provider, 503)
            try:
                refused(client, gateway, question)
                same(sandbox.calls(), 1, "calls that failed")
                refused(client, gateway, "Athens, Greece")
                same(sandbox.calls(), 1, "calls once the circuit is open")
            finally:
                sandbox.heal()
            time.sleep(COOLDOWN + 0.2)
            assert client.geocode(question), f"{question} is there once the provider is back"

        record.check(f"an open circuit is an error: {client}", circuit_open)

    for client in clients.patient(gateway.port):

        def stays_open():
            sandbox.fault(client.provider, 503)
            try:
                refused(client, gateway, "Dublin, Ireland")
                refused(client, gateway, "Helsinki, Finland")
            finally:
                sandbox.heal()
            assert sandbox.calls() <= 6, f"{sandbox.calls()} calls to a provider that is down"
            time.sleep(COOLDOWN + 0.2)
            assert client.geocode("Helsinki, Finland"), "Helsinki is there once the provider is back"

        record.check(f"a provider that stays away is an error: {client}", stays_open)


def refused(client, gateway, question, **more):
    """Raised by the SDK, soon, and without a storm."""
    before, start = gateway.requests(), time.monotonic()
    try:
        place = client.geocode(question, **more)
    except client.error as error:
        bounded(client, gateway, before, start)
        return error
    raise AssertionError(f"a refusal came out as a success: {place}")


def bounded(client, gateway, before, start):
    sent, seconds = gateway.requests() - before, time.monotonic() - start
    assert sent <= REQUESTS[client.waits], f"{sent} requests for one question"
    assert seconds < SECONDS, f"{seconds:.0f} s until it gave up"


COOLDOWN = 2
# Title, what the gateway is given beyond the defaults, the checks.
GROUPS = [
    ("answers", {}, works),
    ("shared entries", {}, shares),
    ("callers and questions refused", {}, refuses_callers),
    ("kill switch", {}, refuses_when_switched_off),
    ("limits", {"burst": 1, "rate": "1/4s"}, refuses_over_the_limit),
    ("limits, clients that wait", {"burst": 1, "rate": "1/4s"}, waits_as_told),
    ("breaker", {"attempts": 1, "failures": 1, "cooldown": f"{COOLDOWN}s"}, refuses_when_open),
]
