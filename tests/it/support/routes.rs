//! More routes to test with, beside those of `gate`.

use super::gate::Setup;

/// No retries, so that a call is an attempt.
const ONCE: &str = "retry = { attempts = 1 }";

/// A provider by preset at 5,000 micro-dollars a call, with one of its operations exposed as it stands in the preset.
fn preset(preset: &str, operation: &str, key: &str, provider: &str, route: &str) -> Setup {
    let retry = if provider.contains("retry") { "" } else { ONCE };
    Setup::new(format!(
        "[providers.{preset}]\npreset = \"{preset}\"\nbase_url = \"{{upstream}}\"\nprice = \"0.005 USD\"\n{key}\n{retry}\n{provider}\n\
         [routes.native]\nprovider = \"{preset}\"\noperation = \"{operation}\"\nbudget = \"none\"\n{route}\n"
    ))
}

const KEEPS: &str = "cache = { found = \"30d\", not_found = \"6h\", weak = \"1h\", rejected = \"10m\" }";
const KEY: &str = "key = \"{secret}\"";

/// `GET /maps/api/geocode/json`, kept as if the terms allowed it.
pub fn google(provider: &str, route: &str) -> Setup {
    let cache = if route.contains("cache") { "" } else { KEEPS };
    let provider = format!("terms_override = \"a test\"\n{provider}");
    preset("google-geocoding", "geocode", KEY, &provider, &format!("{cache}\n{route}"))
}

/// `POST /directions/v2:computeRoutes`, likewise.
pub fn compute_routes(provider: &str, route: &str) -> Setup {
    let cache = if route.contains("cache") { "" } else { KEEPS };
    let provider = format!("terms_override = \"a test\"\n{provider}");
    preset("google-routes", "compute-routes", KEY, &provider, &format!("{cache}\n{route}"))
}

/// Nominatim's `GET /search` or `GET /reverse`.
pub fn nominatim(operation: &str, provider: &str, route: &str) -> Setup {
    preset("nominatim", operation, "", provider, route)
}

/// A route of one's own, mirrored to a provider without a preset or a credential.
pub fn own(expose: &str, route: &str, question: &str) -> Setup {
    Setup::new(format!(
        "[providers.own]\nbase_url = \"{{upstream}}\"\nprice = \"0.005 USD\"\n{ONCE}\n\
         [routes.own]\nprovider = \"own\"\nexpose = \"{expose}\"\nbudget = \"none\"\n{KEEPS}\n{route}\n\
         [routes.own.question]\n{question}\n"
    ))
}

/// Google Geocoding's answer for a found place.
pub fn google_found() -> serde_json::Value {
    serde_json::json!({ "results": [{ "formatted_address": "Somewhere", "types": ["locality"] }], "status": "OK" })
}

/// Google Routes' answer for a found route.
pub fn routes_found() -> serde_json::Value {
    serde_json::json!({ "routes": [{ "distanceMeters": 280_000, "duration": "17000s" }] })
}
