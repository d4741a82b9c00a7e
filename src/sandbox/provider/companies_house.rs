//! Companies House: `GET /company/{number}`, over a few companies that do not exist.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::sandbox::answer::Answer;
use crate::sandbox::asked::Asked;

/// Where it lives.
pub const PREFIX: &str = "/company/";

/// Number, name, status, since, post town. All invented; numbers like these have not been given to anybody.
const COMPANIES: [(&str, &str, &str, &str, &str); 8] = [
    ("99000101", "HALF MOON KETTLES LIMITED", "active", "2011-03-14", "Leeds"),
    ("99000102", "QUIET HARBOUR ROPEWORKS LTD", "active", "2004-11-02", "Bristol"),
    ("99000103", "SEVENTH STAIR LANTERNS LIMITED", "dissolved", "1998-06-30", "York"),
    ("99000104", "BRAMBLE & FINCH UMBRELLAS LTD", "active", "2019-01-21", "London"),
    ("99000105", "NORTHERLY BISCUIT ENGINEERS PLC", "liquidation", "1987-09-09", "Sheffield"),
    ("SC990106", "LONG GLEN WHISTLES LIMITED", "active", "2015-05-05", "Glasgow"),
    ("NI990107", "SLOW TIDE CLOCKS LIMITED", "active", "2008-02-18", "Belfast"),
    ("OC990108", "PAPER LIGHTHOUSE LLP", "active", "2021-10-12", "Cardiff"),
];

/// The question, as it was received.
pub fn question(asked: &Asked) -> String {
    asked.path.strip_prefix(PREFIX).unwrap_or_default().to_owned()
}

/// The body that goes with an HTTP error.
pub fn failure(error: &str) -> Value {
    json!({"errors": [{"error": error, "type": "ch:service"}]})
}

/// Answers one request. The number must be in its full form of eight characters, as the real one wants it.
pub fn answer(asked: &Asked) -> Answer {
    if asked.basic_user().is_none() {
        return Answer::json(StatusCode::UNAUTHORIZED, &json!({"error": "Invalid Authorization", "type": "ch:service"}));
    }
    if asked.method != Method::GET {
        return Answer::json(StatusCode::METHOD_NOT_ALLOWED, &failure("method-not-allowed"));
    }
    let number = question(asked);
    match COMPANIES.iter().find(|company| company.0.eq_ignore_ascii_case(&number)) {
        Some((number, name, status, since, town)) => Answer::ok(&profile(number, name, status, since, town)),
        None => Answer::json(StatusCode::NOT_FOUND, &failure("company-profile-not-found")),
    }
}

fn profile(number: &str, name: &str, status: &str, since: &str, town: &str) -> Value {
    let (kind, jurisdiction) = match number.get(..2) {
        Some("SC") => ("ltd", "scotland"),
        Some("NI") => ("ltd", "northern-ireland"),
        Some("OC") => ("llp", "england-wales"),
        _ if name.ends_with("PLC") => ("plc", "england-wales"),
        _ => ("ltd", "england-wales"),
    };
    json!({
        "can_file": status == "active",
        "company_name": name,
        "company_number": number,
        "company_status": status,
        "date_of_creation": since,
        "has_charges": false,
        "has_insolvency_history": status == "liquidation",
        "jurisdiction": jurisdiction,
        "links": {"self": format!("{PREFIX}{number}")},
        "registered_office_address": {"address_line_1": "1 Sandbox Row", "country": "United Kingdom", "locality": town},
        "sic_codes": ["32990"],
        "type": kind,
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn get(path: &str, authorization: &str) -> (u16, Value) {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", authorization.parse().unwrap());
        let answer = answer(&Asked::head(Method::GET, &path.parse().unwrap(), headers));
        (answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap())
    }

    #[test]
    fn a_company_is_found_by_its_full_number() {
        assert_eq!(get("/company/99000101", "Basic a2V5Og==").1["company_name"], "HALF MOON KETTLES LIMITED");
        assert_eq!(get("/company/sc990106", "Basic a2V5Og==").1["jurisdiction"], "scotland");
    }

    #[test]
    fn an_unknown_number_is_not_found_in_the_documented_shape() {
        let body = json!({"errors": [{"error": "company-profile-not-found", "type": "ch:service"}]});
        assert_eq!(get("/company/00000000", "Basic a2V5Og=="), (404, body));
        assert_eq!(get("/company/99000101", "Basic Og==").0, 401);
    }
}
