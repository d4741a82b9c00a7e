"""The SDKs behind one face: `geocode` gives coordinates or None, `reverse` gives an address or None, errors are the SDK's own."""

import geopy.exc
import googlemaps
import googlemaps.exceptions
import opencage.geocoder
from config import KEYS
from geopy.adapters import URLLibAdapter
from geopy.geocoders import GoogleV3, Nominatim, OpenCage
from node import NODE, NodeError


class Client:
    """`provider` as the sandbox calls it, `route` and `reverse_route` as our config does."""

    error: type  # what this SDK raises when it gives up at once
    keyed = True
    waits = False  # sleeps a Retry-After and asks again: geopy twice, googlemaps-js once
    reverse_route = None

    def __repr__(self):
        return self.name


class GoogleMaps(Client):
    name, provider, route = "googlemaps", "google-geocoding", "google"
    # Not exceptions.Timeout: that is what it raises after a minute of trying again.
    error = (googlemaps.exceptions.ApiError, googlemaps.exceptions.HTTPError)

    def __init__(self, port, key=KEYS["googlemaps"]):
        self.sdk = googlemaps.Client(key=key, base_url=f"http://127.0.0.1:{port}")

    def geocode(self, text, **more):
        for place in self.sdk.geocode(text, **more):
            location = place["geometry"]["location"]
            return location["lat"], location["lng"]

    def reverse(self, latitude, longitude):
        for place in self.sdk.reverse_geocode((latitude, longitude)):
            return place["formatted_address"]


class GoogleMapsJs(Client):
    name, provider, route = "googlemaps-js", "google-geocoding", "google"
    error, waits = NodeError, True

    def __init__(self, port, key=KEYS["googlemaps-js"]):
        self.url, self.key = f"http://127.0.0.1:{port}/maps/api/geocode/json", key

    def ask(self, method, **params):
        return NODE.ask("google", {}, {"method": method, "url": self.url, "params": params | {"key": self.key}})

    def geocode(self, text, **more):
        for place in self.ask("geocode", address=text, **more):
            location = place["geometry"]["location"]
            return location["lat"], location["lng"]

    def reverse(self, latitude, longitude):
        for place in self.ask("reverseGeocode", latlng=[latitude, longitude]):
            return place["formatted_address"]


class OpenCageOwn(Client):
    name, provider, route = "opencage", "opencage", "opencage"
    error = opencage.geocoder.OpenCageGeocodeError

    def __init__(self, port, key=KEYS["opencage"]):
        # It takes no address but this name.
        self.sdk = opencage.geocoder.OpenCageGeocode(key, protocol="http", domain=f"localhost:{port}")

    def geocode(self, text, **more):
        for place in self.sdk.geocode(text, **more):
            return place["geometry"]["lat"], place["geometry"]["lng"]

    def reverse(self, latitude, longitude):
        for place in self.sdk.reverse_geocode(latitude, longitude):
            return place["formatted"]


class Geopy(Client):
    error = geopy.exc.GeopyError

    def __init__(self, port, key=None, urllib=False):
        """With requests, its default here, it obeys Retry-After; with urllib it does not try again."""
        more = {"adapter_factory": URLLibAdapter} if urllib else {}
        self.waits = not urllib
        self.sdk = self.make(f"127.0.0.1:{port}", key or KEYS.get(self.name), more | {"scheme": "http", "timeout": 30})

    def geocode(self, text, **more):
        place = self.sdk.geocode(text, **more)
        return place and (place.latitude, place.longitude)

    def reverse(self, latitude, longitude):
        place = self.sdk.reverse((latitude, longitude))
        return place and place.address


class GeopyGoogle(Geopy):
    name, provider, route = "geopy-google", "google-geocoding", "google"

    def make(self, domain, key, more):
        return GoogleV3(key, domain=domain, **more)


class GeopyOpenCage(Geopy):
    name, provider, route = "geopy-opencage", "opencage", "opencage"

    def make(self, domain, key, more):
        return OpenCage(key, domain=domain, **more)


class GeopyNominatim(Geopy):
    name, provider, route, reverse_route = "geopy-nominatim", "nominatim", "search", "reverse"
    keyed = False

    def make(self, domain, _key, more):
        return Nominatim(user_agent="tollgate-sdk-test", domain=domain, **more)


def all_of(port):
    return [GoogleMaps(port), GoogleMapsJs(port), GeopyGoogle(port), OpenCageOwn(port), GeopyOpenCage(port), GeopyNominatim(port)]


def hasty(port):
    """The same, as far as they can be told not to wait."""
    return [
        GoogleMaps(port),
        GeopyGoogle(port, urllib=True),
        OpenCageOwn(port),
        GeopyOpenCage(port, urllib=True),
        GeopyNominatim(port, urllib=True),
    ]


def patient(port):
    return [client for client in all_of(port) if client.waits]


def with_wrong_key(port):
    wrong_google, wrong_hex = "AIzaSyNobodyHasThisKey00000000000000000", "0" * 32
    return [
        GoogleMaps(port, wrong_google),
        GoogleMapsJs(port, wrong_google),
        GeopyGoogle(port, wrong_google),
        OpenCageOwn(port, wrong_hex),
        GeopyOpenCage(port, wrong_hex),
    ]
