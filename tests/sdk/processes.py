"""The sandbox and the gateway as processes of their own, and what can be asked of them."""

import json
import os
import re
import subprocess
import tempfile
import threading
import urllib.request
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TOLLGATE_BIN", ROOT / "target/debug/tollgate")
ADMIN_TOKEN = "sdk-test-admin-token"

# Caller keys in the shape that each SDK insists on; one a client, so that each has its own bucket.
KEYS = {
    "googlemaps": "AIzaSyTollgateCallerGooglemaps000000001",
    "geopy-google": "AIzaSyTollgateCallerGeopyGoogle00000002",
    "opencage": "0123456789abcdef0123456789abcdef",
    "geopy-opencage": "fedcba9876543210fedcba9876543210",
}

CONFIG = """
[server]
listen = "127.0.0.1:0"

[admin]
listen = "127.0.0.1:0"
token = "env:TOLLGATE_ADMIN_TOKEN"

[store]
url = "memory:"

[callers]
anonymous = "by-ip" # Nominatim's clients have no key
{callers}

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

ROUTE = """
limits = {{ caller = {{ burst = {burst}, rate = "{rate}" }}, route = {{ burst = 1000, rate = "1000/s" }} }}
cache = {{ found = "1h", not_found = "1h", weak = "1h", rejected = "10m" }}
budget = "none"
"""

PROVIDER = """
quota = {{ burst = 1000, rate = "1000/s" }}
retry = {{ attempts = {attempts} }}
breaker = {{ failures = {failures}, cooldown = "{cooldown}" }}
"""


def ask(method, url, body=None, token=None):
    """The answer's text; anything but 2xx raises."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


class Process:
    """`tollgate ..`, once it has said where it listens."""

    def __init__(self, arguments, roles):
        self.log = tempfile.NamedTemporaryFile(prefix="tollgate-", suffix=".log")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TOLLGATE_")}
        environment |= {"TOLLGATE_LOG": "warn", "TOLLGATE_ADMIN_TOKEN": ADMIN_TOKEN, "PROVIDER_KEY": "any"}
        self.process = subprocess.Popen(
            [BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment
        )
        self.addresses = {}
        late = threading.Timer(30, self.process.kill)
        late.start()
        for line in self.process.stdout:
            if said := re.search(r"listening role=(\S+) addr=(\S+)", line):
                self.addresses[said[1]] = said[2]
            if roles <= self.addresses.keys():
                break
        late.cancel()
        if not roles <= self.addresses.keys():
            self.process.wait()
            raise SystemExit(f"tollgate {' '.join(map(str, arguments))} did not come up\n{self.last_words()}")
        # Whatever else it writes must not fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def last_words(self):
        lines = Path(self.log.name).read_text().splitlines()[-20:]
        return "\n".join(["  its log:", *(f"    {line}" for line in lines)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Sandbox(Process):
    def __init__(self):
        super().__init__(["sandbox", "--listen", "127.0.0.1:0"], {"sandbox"})
        self.url = f"http://{self.addresses['sandbox']}"

    def calls(self):
        return json.loads(ask("GET", f"{self.url}/meter"))["calls"]

    def reset_meter(self):
        ask("DELETE", f"{self.url}/meter")

    def fault(self, provider, status):
        ask("POST", f"{self.url}/faults", {"provider": provider, "status": status})

    def heal(self):
        ask("DELETE", f"{self.url}/faults")


class Gateway(Process):
    def __init__(self, sandbox, burst=1000, rate="1000/s", attempts=2, failures=5, cooldown="30s"):
        self.file = tempfile.NamedTemporaryFile("w", prefix="tollgate-", suffix=".toml")
        callers = (f'[callers.keys.{name}]\nsha256 = "{sha256(key.encode()).hexdigest()}"' for name, key in KEYS.items())
        self.file.write(
            CONFIG.format(
                sandbox=sandbox.url,
                callers="\n".join(callers),
                route=ROUTE.format(burst=burst, rate=rate),
                provider=PROVIDER.format(attempts=attempts, failures=failures, cooldown=cooldown),
            )
        )
        self.file.flush()
        super().__init__(["serve", "-c", self.file.name], {"gateway", "admin"})
        self.port = self.addresses["gateway"].rsplit(":", 1)[1]
        self.admin = f"http://{self.addresses['admin']}"

    def requests(self):
        """How many it has answered, refusals counted."""
        lines = re.findall(r"^tollgate_requests_total(?:\{.*\})? (\d+)", ask("GET", f"{self.admin}/metrics"), re.MULTILINE)
        return sum(map(int, lines))

    def switch(self, route, state):
        ask("PUT", f"{self.admin}/v1/switches/{route}", {"state": state, "reason": "SDK test"}, ADMIN_TOKEN)
