//! Twilio Messages: `POST /2010-04-01/Accounts/{sid}/Messages.json`. There is no idempotency key: every accepted call is a message.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::sandbox::answer::Answer;
use crate::sandbox::asked::{Asked, first};

/// Where it lives.
pub const PREFIX: &str = "/2010-04-01/Accounts/";

/// The GSM 7-bit alphabet beyond ASCII letters and digits; a text with any other character is sent as UCS-2.
const GSM: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./:;<=>?¡ÄÖÑÜ§¿äöñüà";
/// Characters that take two places in it.
const GSM_TWICE: &str = "^{}\\[~]|€\u{c}";

/// The messages accepted so far.
#[derive(Debug, Default)]
pub struct Messages(AtomicU64);

/// The question, as it was received.
pub fn question(asked: &Asked) -> String {
    let form = asked.form();
    format!("{}: {}", first(&form, "To").unwrap_or("(nobody)"), first(&form, "Body").unwrap_or("(nothing)"))
}

/// The body that goes with an HTTP error.
pub fn failure(status: StatusCode, code: u32, message: &str) -> Value {
    let more = format!("https://www.twilio.com/docs/errors/{code}");
    json!({"code": code, "message": message, "more_info": more, "status": status.as_u16()})
}

impl Messages {
    /// Answers one request.
    pub fn answer(&self, asked: &Asked, now: Timestamp) -> Answer {
        let account = asked.path.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix("/Messages.json"));
        let Some(account) = account.filter(|account| !account.is_empty() && !account.contains('/')) else {
            return failed(StatusCode::NOT_FOUND, 20404, "The requested resource was not found");
        };
        if asked.method != Method::POST {
            return failed(StatusCode::METHOD_NOT_ALLOWED, 20004, "Method not allowed");
        }
        if asked.basic_user().is_none() {
            return failed(StatusCode::UNAUTHORIZED, 20003, "Authenticate");
        }
        match Message::read(asked) {
            Err((code, message)) => failed(StatusCode::BAD_REQUEST, code, message),
            Ok(message) => {
                let number = self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
                let segments = segments(&message.body);
                Answer::json(StatusCode::CREATED, &message.json(account, number, segments, now)).billed(segments)
            }
        }
    }
}

fn failed(status: StatusCode, code: u32, message: &str) -> Answer {
    Answer::json(status, &failure(status, code, message))
}

struct Message {
    to: String,
    from: Option<String>,
    service: Option<String>,
    body: String,
}

impl Message {
    fn read(asked: &Asked) -> Result<Self, (u32, &'static str)> {
        let form = asked.form();
        let field = |name| first(&form, name).map(str::to_owned);
        let to = field("To").ok_or((21604, "A 'To' phone number is required."))?;
        let (from, service) = (field("From"), field("MessagingServiceSid"));
        if from.is_none() && service.is_none() {
            return Err((21603, "A 'From' phone number is required."));
        }
        let content = field("Body").or_else(|| field("MediaUrl")).or_else(|| field("ContentSid"));
        content.ok_or((21602, "Message body is required."))?;
        if !is_number(&to) {
            return Err((21211, "Invalid 'To' phone number."));
        }
        Ok(Self { to, from, service, body: field("Body").unwrap_or_default() })
    }

    fn json(&self, account: &str, number: u64, segments: u64, now: Timestamp) -> Value {
        let sid = format!("SM{number:032x}");
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now.seconds())).replace("GMT", "+0000");
        let uri = format!("{PREFIX}{account}/Messages/{sid}");
        json!({
            "account_sid": account,
            "api_version": "2010-04-01",
            "body": self.body,
            "date_created": date,
            "date_sent": null,
            "date_updated": date,
            "direction": "outbound-api",
            "error_code": null,
            "error_message": null,
            "from": self.from,
            "messaging_service_sid": self.service,
            "num_media": "0",
            "num_segments": segments.to_string(),
            "price": null,
            "price_unit": "USD",
            "sid": sid,
            "status": if self.service.is_some() { "accepted" } else { "queued" },
            "subresource_uris": {"media": format!("{uri}/Media.json")},
            "to": self.to,
            "uri": format!("{uri}.json"),
        })
    }
}

/// E.164, or a channel address such as `whatsapp:+1..`.
fn is_number(to: &str) -> bool {
    let number = to.rsplit(':').next().unwrap_or(to);
    let digits = number.strip_prefix('+').unwrap_or_default();
    (7..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
}

/// How many messages a text is split into: 160 or 70 characters in one, 153 or 67 in each of several.
fn segments(text: &str) -> u64 {
    let plain = |c: char| c.is_ascii_alphanumeric() || GSM.contains(c);
    let (lengths, one, each): (Vec<usize>, _, _) = if text.chars().all(|c| plain(c) || GSM_TWICE.contains(c)) {
        (text.chars().map(|c| if plain(c) { 1 } else { 2 }).collect(), 160, 153)
    } else {
        (text.chars().map(char::len_utf16).collect(), 70, 67)
    };
    if lengths.iter().sum::<usize>() <= one {
        return 1;
    }
    // No character is split between two messages.
    let (mut messages, mut full) = (1, 0);
    for length in lengths {
        if full + length > each {
            (messages, full) = (messages + 1, 0);
        }
        full += length;
    }
    messages
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn post(messages: &Messages, authorization: &str, form: &'static str) -> (u16, Value, u64) {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", authorization.parse().unwrap());
        let mut asked = Asked::head(Method::POST, &"/2010-04-01/Accounts/AC1/Messages.json".parse().unwrap(), headers);
        asked.body = form.into();
        let answer = messages.answer(&asked, Timestamp(1_700_000_000_000_000));
        (answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap(), answer.units)
    }

    #[test]
    fn every_accepted_call_is_another_message() {
        let messages = Messages::default();
        let form = "To=%2B15005550006&From=%2B15005550001&Body=hello";
        let (status, first, _) = post(&messages, "Basic QUMxOngx", form);
        assert_eq!((status, &first["num_segments"], &first["status"]), (201, &json!("1"), &json!("queued")));
        assert_eq!(first["date_created"], "Tue, 14 Nov 2023 22:13:20 +0000");
        assert_ne!(post(&messages, "Basic QUMxOngx", form).1["sid"], first["sid"]);
    }

    #[test]
    fn faults_of_the_caller_have_their_code() {
        let messages = Messages::default();
        let code = |authorization, form| post(&messages, authorization, form).1["code"].clone();
        assert_eq!(code("Bearer x", ""), 20003);
        assert_eq!(code("Basic QUMxOngx", "From=%2B15005550001&Body=x"), 21604);
        assert_eq!(code("Basic QUMxOngx", "To=%2B15005550006&Body=x"), 21603);
        assert_eq!(code("Basic QUMxOngx", "To=%2B15005550006&From=x"), 21602);
        assert_eq!(code("Basic QUMxOngx", "To=junk&From=x&Body=x"), 21211);
        assert_eq!(post(&messages, "Basic QUMxOngx", "").2, 0);
    }

    #[test]
    fn long_texts_are_billed_by_segment() {
        assert_eq!(segments(""), 1);
        assert_eq!(segments(&"a".repeat(160)), 1);
        assert_eq!(segments(&"a".repeat(161)), 2);
        assert_eq!(segments(&"€".repeat(81)), 2);
        assert_eq!(segments(&"ж".repeat(70)), 1);
        assert_eq!(segments(&"ж".repeat(135)), 3);
    }
}
