"""The SDKs that write behind one face: `send` has a thing done under a key, and errors are the SDK's own."""

import uuid
from typing import NamedTuple

import requests
import stripe
import twilio.rest
from config import KEYS
from node import NODE, NodeError
from twilio.base.exceptions import TwilioRestException
from twilio.http.http_client import TwilioHttpClient


def fresh():
    """A key for another intention."""
    return str(uuid.uuid4())


class Done(NamedTuple):
    """What was made; the sandbox numbers it. Or what was made before."""

    number: int
    replayed: bool


class Refused(NamedTuple):
    type: str
    status: int | None
    code: object
    message: str


class Writer:
    """`provider` as the sandbox calls it, `route` as our config does."""

    error: type  # what this SDK raises when it gives up
    retries = 0  # how often it asks again by itself

    def __init__(self, port, key=None, patience=30):
        self.port, self.url, self.key, self.patience = port, f"http://127.0.0.1:{port}", key or KEYS[self.name], patience

    def __repr__(self):
        return self.name

    def send(self, key=None, **changes):
        """The usual thing, done under a key of the caller's; without one it is as the SDK does it."""
        made, headers = self.create(key, self.usual | changes)
        assert made, f"what it takes for a success has no id, {headers}"
        return Done(self.number(made), headers.get("idempotent-replayed") == "true")


class Twilio(Writer):
    """It has no parameter for a key: its HTTP client takes a header."""

    provider, route, price = "twilio", "sms", 7_900
    account = "AC" + "0123456789abcdef" * 2
    usual = {"to": "+15005550006", "from": "+15005550001", "body": "Your table is ready"}
    other = {"body": "Your table is gone"}
    invalid = {"to": "nobody"}
    dear = {"body": "Your table is ready. " * 10}
    rejection_code = 21610
    rejection = {"status": 400, "body": {"code": rejection_code, "message": "unsubscribed", "status": 400}}

    def number(self, sid):
        return int(sid.removeprefix("SM"), 16)


class TwilioPython(Twilio):
    name = "twilio-python"
    error = (TwilioRestException, requests.exceptions.Timeout)

    def create(self, key, params):
        answers = []
        http = TwilioHttpClient(timeout=self.patience, request_hooks={"response": lambda answer, **_: answers.append(answer)})
        if key:
            http.session.headers["Idempotency-Key"] = key
        client = twilio.rest.Client(self.account, self.key, http_client=http)
        client.api.base_url = self.url
        message = client.messages.create(to=params["to"], from_=params["from"], body=params["body"])
        return message.sid, answers[-1].headers

    def about(self, error):
        if isinstance(error, requests.exceptions.Timeout):
            return Refused(type(error).__name__, None, None, str(error))
        return Refused(type(error).__name__, error.status, error.code, error.msg)


class TwilioNode(Twilio):
    name = "twilio-node"
    error = NodeError
    options = {}

    def create(self, key, params):
        client = {"account": self.account, "token": self.key, "url": self.url, "timeout": self.patience * 1000, **self.options}
        return NODE.ask("twilio", client | {"headers": {"Idempotency-Key": key} if key else {}}, params)

    def about(self, error):
        return Refused(error.type, error.status, error.code, error.message)


class TwilioNodeRetrying(TwilioNode):
    """Told to try again, it does when it has come too fast."""

    name, retries = "twilio-node-retrying", 3
    options = {"autoRetry": True}


class Stripe(Writer):
    """It makes up a key where none is given, and tries again with the same."""

    provider, route, price, retries = "stripe", "pay", 30_000, 2
    usual = {"amount": 1099, "currency": "eur"}
    other = {"amount": 2099}
    invalid = {"currency": "no currency"}
    dear = {"currency": "usd"}
    rejection_code = "card_declined"
    rejection = {"status": 402, "body": {"error": {"type": "card_error", "code": rejection_code, "message": "declined"}}}

    def number(self, id):
        return int(id.removeprefix("pi_"))


class StripePython(Stripe):
    name = "stripe-python"
    error = stripe.StripeError

    def create(self, key, params):
        options = {"base_addresses": {"api": self.url}, "max_network_retries": self.retries}
        client = stripe.StripeClient(self.key, **options, http_client=stripe.RequestsClient(timeout=self.patience))
        intent = client.v1.payment_intents.create(params, {"idempotency_key": key} if key else None)
        return intent.id, intent.last_response.headers

    def about(self, error):
        return Refused(type(error).__name__, error.http_status, error.code, error.user_message)


class StripeModule(StripePython):
    """The older face of the same package. Its address is a global, so one group of checks at most can have it."""

    name = "stripe-python-module"

    def create(self, key, params):
        stripe.api_base = self.url
        intent = stripe.PaymentIntent.create(api_key=self.key, **params, **({"idempotency_key": key} if key else {}))
        return intent.id, intent.last_response.headers


class StripeNode(Stripe):
    name = "stripe-node"
    error = NodeError

    def create(self, key, params):
        client = {"key": self.key, "host": "127.0.0.1", "port": self.port, "protocol": "http", "timeout": self.patience * 1000}
        return NODE.ask("stripe", client, {"params": params, "options": {"idempotencyKey": key} if key else {}})

    about = TwilioNode.about


def twilios(port, *more):
    return [TwilioPython(port, *more), TwilioNode(port, *more)]


def stripes(port, *more):
    return [StripePython(port, *more), StripeNode(port, *more)]


def all_of(port, *more):
    return twilios(port, *more) + stripes(port, *more)
