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

/// Companies House's `GET /company/{number}`.
pub fn company(provider: &str, route: &str) -> Setup {
    preset("companies-house", "company", KEY, provider, route)
}

/// A route of one's own, mirrored to a provider without a preset or a credential.
pub fn own(expose: &str, route: &str, question: &str) -> Setup {
    Setup::new(format!(
        "[providers.own]\nbase_url = \"{{upstream}}\"\nprice = \"0.005 USD\"\n{ONCE}\n\
         [routes.own]\nprovider = \"own\"\nexpose = \"{expose}\"\nbudget = \"none\"\n{KEEPS}\n{route}\n\
         [routes.own.question]\n{question}\n"
    ))
}

/// A paid write of one's own shape: `POST /v1/sms` with JSON of `to` and `body`, at 8,000 micro-dollars a message, to a provider that
/// knows no keys of ours.
pub fn sms(provider: &str, route: &str) -> Setup {
    let writes = if route.contains("writes") { "" } else { "writes = {}" };
    Setup::new(format!(
        "[providers.sms]\nbase_url = \"{{upstream}}\"\nprice = \"0.008 USD\"\nauth = {{ in = \"bearer\" }}\nkey = \"{{secret}}\"\n{provider}\n\
         [routes.sms]\nprovider = \"sms\"\nexpose = \"POST /v1/sms\"\nbudget = \"none\"\n{writes}\n{route}\n\
         [routes.sms.question]\nto = {{ in = \"json\", type = \"phone\", required = true }}\n\
         body = {{ in = \"json\", type = \"text\", max = 1600, required = true }}\n"
    ))
}

/// A write of one's own, a form mirrored to a provider without a preset or a credential: `POST /form`.
pub fn form(route: &str, question: &str) -> Setup {
    Setup::new(format!(
        "[providers.own]\nbase_url = \"{{upstream}}\"\nprice = \"0.005 USD\"\n{ONCE}\n\
         [routes.form]\nprovider = \"own\"\nexpose = \"POST /form\"\nbudget = \"none\"\nwrites = {{ key = \"optional\" }}\n{route}\n\
         [routes.form.question]\n{question}\n"
    ))
}

/// Twilio's messages by the preset, at 7,900 micro-dollars a segment.
pub fn twilio(provider: &str, route: &str) -> Setup {
    let price = if provider.contains("price") { "" } else { "price = { units = \"segments\", each = \"0.0079 USD\" }" };
    paid_write("twilio", "send-message", &format!("{price}\n{provider}"), route)
}

/// Stripe's payment intents by the preset, at 300,000 micro-dollars each.
pub fn stripe(provider: &str, route: &str) -> Setup {
    paid_write("stripe", "create-payment-intent", &format!("price = \"0.30 USD\"\n{provider}"), route)
}

/// Payment intents as a route of one's own describes them: `POST /pay` with a form of `amount` and `currency`.
pub fn own_stripe() -> Setup {
    Setup::new(format!(
        "[providers.stripe]\npreset = \"stripe\"\nbase_url = \"{{upstream}}\"\n{KEY}\nprice = \"0.30 USD\"\ntimeout = \"300ms\"\n{ONCE}\n\
         [routes.pay]\nprovider = \"stripe\"\nexpose = \"POST /pay\"\nbudget = \"none\"\n\
         [routes.pay.question]\namount = {{ in = \"form\", type = \"integer\", required = true }}\n\
         currency = {{ in = \"form\", type = \"string\", required = true }}\n\
         [routes.pay.send]\nmethod = \"POST\"\npath = \"/v1/payment_intents\"\n\
         form = {{ amount = \"{{amount}}\", currency = \"{{currency}}\" }}\n"
    ))
}

fn paid_write(preset: &str, operation: &str, provider: &str, route: &str) -> Setup {
    let retry = if provider.contains("retry") { "" } else { ONCE };
    Setup::new(format!(
        "[providers.{preset}]\npreset = \"{preset}\"\nbase_url = \"{{upstream}}\"\n{retry}\n{provider}\n{}\n\
         [routes.native]\nprovider = \"{preset}\"\noperation = \"{operation}\"\nbudget = \"none\"\n{route}\n",
        if provider.contains("key =") { "" } else { KEY }
    ))
}

/// What a provider says of a message it has taken.
pub fn message(id: u32) -> serde_json::Value {
    serde_json::json!({ "id": id, "status": "queued" })
}

/// Google Geocoding's answer for a found place.
pub fn google_found() -> serde_json::Value {
    serde_json::json!({ "results": [{ "formatted_address": "Somewhere", "types": ["locality"] }], "status": "OK" })
}

/// Google Routes' answer for a found route.
pub fn routes_found() -> serde_json::Value {
    serde_json::json!({ "routes": [{ "distanceMeters": 280_000, "duration": "17000s" }] })
}
