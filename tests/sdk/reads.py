"""What must hold for each SDK that reads. A check's name ends with the SDK's."""

import itertools
import time
from functools import partial

import clients
import config
import refusal
from record import near, same

BERLIN, PARIS, MADRID = (52.52, 13.405), (48.8566, 2.3522), (40.4168, -3.7038)
# What an SDK may send for a refusal: one request, or three if it obeys Retry-After.
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
    for names in [("googlemaps", "geopy-google", "googlemaps-js"), ("opencage", "geopy-opencage"), ("geopy-nominatim",)]:
        sharing = [by_name[name] for name in names]
        in_turn = itertools.cycle(sharing)

        def spellings():
            for spelling in ("Paris, France", "  paris,   FRANCE ", "PARIS, France", "Ｐａｒｉｓ, France"):
                near(next(in_turn).geocode(spelling), PARIS)
            same(sandbox.calls(), 1, "calls for one question in four spellings")

        def parameters():
            for client in sharing:
                near(client.geocode("Madrid, Spain", language="es"), MADRID)
            same(sandbox.calls(), 1, "calls for one question in one language")
            for client in sharing:
                near(client.geocode("madrid, spain", language="fr"), MADRID)
            same(sandbox.calls(), 2, "calls once asked in another language too")

        def points():
            for client in sharing:
                assert client.reverse(48.8566, 2.3522)
                assert client.reverse(48.85660, 2.35220)
            same(sandbox.calls(), 1, "calls for one point")

        who = " and ".join(names)
        record.check(f"spellings share an entry: {who}", spellings)
        if len(names) > 1:
            record.check(f"parameter orders share an entry, languages do not: {who}", parameters)
        record.check(f"a point is a point: {who}", points)


def refuses_callers(record, gateway, sandbox):
    for client in clients.with_wrong_key(gateway.port):

        def wrong_key():
            refused(client, gateway, "Vienna, Austria")
            same(sandbox.calls(), 0, "calls for a caller we do not know")

        record.check(f"a wrong key is an error: {client}", wrong_key)

    for client in (clients.GoogleMaps(gateway.port), clients.GoogleMapsJs(gateway.port), clients.OpenCageOwn(gateway.port)):

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
            refusal.bounded(gateway, before, start, REQUESTS[client.waits])

        record.check(f"over the limit is a wait or an error: {client}", waits)


def refuses_when_open(record, gateway, sandbox):
    # A question a client: two of them share a provider, so what one was answered is a hit for the other.
    questions = ["Madrid, Spain", "Stockholm, Sweden", "Brussels, Belgium", "Budapest, Hungary", "Nairobi, Kenya"]
    for client, question in zip(clients.hasty(gateway.port), questions, strict=True):

        def circuit_open():
            with sandbox.trouble(client.provider, status=503):
                refused(client, gateway, question)
                same(sandbox.calls(), 1, "calls that failed")
                refused(client, gateway, "Athens, Greece")
                same(sandbox.calls(), 1, "calls once the circuit is open")
            time.sleep(COOLDOWN + 0.2)
            assert client.geocode(question), f"{question} is there once the provider is back"

        record.check(f"an open circuit is an error: {client}", circuit_open)

    questions = [("Dublin, Ireland", "Helsinki, Finland"), ("Oslo, Norway", "Warsaw, Poland")] * 2
    for client, (one, other) in zip(clients.patient(gateway.port), questions, strict=True):

        def stays_open():
            with sandbox.trouble(client.provider, status=503):
                refused(client, gateway, one)
                refused(client, gateway, other)
            assert sandbox.calls() <= 6, f"{sandbox.calls()} calls to a provider that is down"
            time.sleep(COOLDOWN + 0.2)
            assert client.geocode(other), f"{other} is there once the provider is back"

        record.check(f"a provider that stays away is an error: {client}", stays_open)


def refused(client, gateway, question, **more):
    return refusal.refused(gateway, lambda: client.geocode(question, **more), client.error, REQUESTS[client.waits])


COOLDOWN = 2
# Title, the gateway's config, the checks.
GROUPS = [
    ("answers", config.reads, works),
    ("shared entries", config.reads, shares),
    ("callers and questions refused", config.reads, refuses_callers),
    ("kill switch", config.reads, refuses_when_switched_off),
    ("limits", partial(config.reads, burst=1, rate="1/4s"), refuses_over_the_limit),
    ("limits, clients that wait", partial(config.reads, burst=1, rate="1/4s"), waits_as_told),
    ("breaker", partial(config.reads, attempts=1, failures=1, cooldown=f"{COOLDOWN}s"), refuses_when_open),
]
