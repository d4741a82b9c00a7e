"""What the gateway is given: whole files of TOML."""

from hashlib import sha256

# Caller keys in the shape that each SDK insists on; one a client, so that each has its own bucket.
KEYS = {
    "googlemaps": "AIzaSyTollgateCallerGooglemaps000000001",
    "googlemaps-js": "AIzaSyTollgateCallerGooglemapsJs0000003",
    "geopy-google": "AIzaSyTollgateCallerGeopyGoogle00000002",
    "opencage": "0123456789abcdef0123456789abcdef",
    "geopy-opencage": "fedcba9876543210fedcba9876543210",
    "twilio-python": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "twilio-node": "00112233445566778899aabbccddeeff",
    "twilio-node-retrying": "ffeeddccbbaa99887766554433221100",
    "stripe-python": "sk_test_TollgateCallerStripePython01",
    "stripe-python-module": "sk_test_TollgateCallerStripeModule02",
    "stripe-node": "sk_test_TollgateCallerStripeNode0003",
}

SERVER = """
[server]
listen = "127.0.0.1:0"

[admin]
listen = "127.0.0.1:0"
token = "env:TOLLGATE_ADMIN_TOKEN"

[store]
url = "{store}"
timeout = "2s"

[callers]
{anonymous}
"""

READS = """
[providers.opencage]
preset = "opencage"
key = "env:PROVIDER_KEY"
base_url = "{sandbox}"
price = "0.005 USD"
{provider}

[providers.google-geocoding]
preset = "google-geocoding"
key = "env:PROVIDER_KEY"
base_url = "{sandbox}"
price = "0.005 USD"
terms_override = "the sandbox answers, not Google"
{provider}

[providers.nominatim]
preset = "nominatim"
base_url = "{sandbox}"
{provider}

[routes.opencage]
provider = "opencage"
operation = "geocode"
{route}

[routes.google]
provider = "google-geocoding"
operation = "geocode"
{route}

[routes.search]
provider = "nominatim"
operation = "search"
{route}

[routes.reverse]
provider = "nominatim"
operation = "reverse"
{route}
"""


WRITES = """
[providers.twilio]
preset = "twilio"
account = "ACgateway"
key = "env:PROVIDER_KEY"
base_url = "{sandbox}"
price = {{ units = "segments", each = "0.0079 USD" }}
{provider}

[providers.stripe]
preset = "stripe"
key = "env:PROVIDER_KEY"
base_url = "{sandbox}"
price = {{ table = [{{ prefix = "eur", price = "0.03 USD" }}], otherwise = "1 USD" }}
{provider}

[routes.sms]
provider = "twilio"
operation = "send-message"
max_price = "0.0079 USD"
budget = {{ day = "100 USD", caller_day = "{sms_budget}" }}
{route}

[routes.pay]
provider = "stripe"
operation = "create-payment-intent"
priced_by = {{ prefix = "currency" }}
max_price = "0.5 USD"
budget = {{ day = "100 USD", caller_day = "{pay_budget}" }}
{route}
"""


def server(anonymous="", store="memory:"):
    callers = (f'[callers.keys.{name}]\nsha256 = "{sha256(key.encode()).hexdigest()}"\n' for name, key in KEYS.items())
    return SERVER.format(anonymous=anonymous, store=store) + "\n".join(callers)


def reads(sandbox, burst=1000, rate="1000/s", attempts=2, failures=5, cooldown="30s"):
    provider = f"""
quota = {{ burst = 1000, rate = "1000/s" }}
retry = {{ attempts = {attempts} }}
breaker = {{ failures = {failures}, cooldown = "{cooldown}" }}
"""
    route = f"""
limits = {{ caller = {{ burst = {burst}, rate = "{rate}" }}, route = {{ burst = 1000, rate = "1000/s" }} }}
cache = {{ found = "1h", not_found = "1h", weak = "1h", rejected = "10m" }}
budget = "none"
"""
    # Nominatim's clients have no key.
    return server('anonymous = "by-ip"') + READS.format(sandbox=sandbox, provider=provider, route=route)


def writes(sandbox, store="memory:", key="required", burst=1000, attempts=2, failures=1000, timeout="6s", one_call=False):
    provider = f"""
quota = {{ burst = 1000, rate = "1000/s" }}
retry = {{ attempts = {attempts} }}
breaker = {{ failures = {failures}, cooldown = "1h" }}
timeout = "{timeout}"
"""
    route = f"""
writes = {{ key = "{key}" }}
limits = {{ caller = {{ burst = {burst}, rate = "1/h" }}, route = {{ burst = 1000, rate = "1000/s" }} }}
"""
    budgets = {"sms_budget": "0.0079 USD", "pay_budget": "0.03 USD"} if one_call else {"sms_budget": "9 USD", "pay_budget": "9 USD"}
    return server(store=store) + WRITES.format(sandbox=sandbox, provider=provider, route=route, **budgets)
