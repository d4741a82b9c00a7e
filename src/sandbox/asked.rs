//! One request as a provider reads it.

use bytes::Bytes;
use http::{HeaderMap, Method, Uri, header};

/// A request, read whole.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Its method.
    pub method: Method,
    /// Its path, percent-decoded.
    pub path: String,
    /// The query, decoded, in the order it came.
    pub query: Vec<(String, String)>,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body; empty while it has not been read.
    pub body: Bytes,
}

impl Asked {
    /// What the head alone says.
    pub fn head(method: Method, uri: &Uri, headers: HeaderMap) -> Self {
        let path = percent_decoded(uri.path(), false);
        Self { method, path, query: pairs(uri.query().unwrap_or_default()), headers, body: Bytes::new() }
    }

    /// The first value of a query parameter, unless it is blank.
    pub fn query(&self, name: &str) -> Option<&str> {
        first(&self.query, name)
    }

    /// A header as text, unless it is blank.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim).filter(|value| !value.is_empty())
    }

    /// The body as a form.
    pub fn form(&self) -> Vec<(String, String)> {
        pairs(&String::from_utf8_lossy(&self.body))
    }

    /// The token of `Authorization: Bearer`.
    pub fn bearer(&self) -> Option<&str> {
        self.authorization("bearer")
    }

    /// The user name of `Authorization: Basic`, unless it is blank.
    pub fn basic_user(&self) -> Option<String> {
        let decoded = base64_decoded(self.authorization("basic")?)?;
        let user = String::from_utf8_lossy(&decoded).split(':').next().unwrap_or_default().trim().to_owned();
        (!user.is_empty()).then_some(user)
    }

    fn authorization(&self, scheme: &str) -> Option<&str> {
        let (given, rest) = self.header(header::AUTHORIZATION.as_str())?.split_once(' ')?;
        (given.eq_ignore_ascii_case(scheme) && !rest.trim().is_empty()).then_some(rest.trim())
    }
}

/// The first value under a name, unless it is blank.
pub fn first<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|(given, _)| given == name);
    found.map(|(_, value)| value.as_str()).filter(|value| !value.trim().is_empty())
}

/// `a=1&b=2`, decoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').unwrap_or((part, ""))).map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    percent_decoded(text, true)
}

/// Decodes `%41`, and `+` as a space in forms and queries; what is not an escape stays as it is.
fn percent_decoded(text: &str, plus: bool) -> String {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, escaped(after)) {
            (b'%', Some((value, after))) => {
                out.push(value);
                rest = after;
            }
            (b'+', _) if plus => out.push(b' '),
            (other, _) => out.push(*other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The byte two hexadecimal digits stand for, and what follows them.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let ([high, low], after) = text.split_first_chunk::<2>()?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(((digit(*high)? << 4) | digit(*low)?, after))
}

/// Base64 in the standard alphabet; the padding may be missing.
fn base64_decoded(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut held, mut out) = (0_u32, 0_u32, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte.wrapping_sub(b'A'),
            b'a'..=b'z' => byte.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => byte.wrapping_sub(b'0').wrapping_add(52),
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = ((bits << 6) | u32::from(value)) & 0xFFFF;
        held = held.wrapping_add(6);
        if held >= 8 {
            held = held.wrapping_sub(8);
            out.push(u8::try_from((bits >> held) & 0xFF).ok()?);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(uri: &str, authorization: &str) -> Asked {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, authorization.parse().unwrap());
        Asked::head(Method::GET, &uri.parse().unwrap(), headers)
    }

    #[test]
    fn queries_and_paths_are_decoded_each_in_its_way() {
        let asked = asked("/v2%3Ago+on?q=S%C3%A3o+Paulo&%24alt=json%3Benum-encoding%3Dint&bad=%zz%4&q=second&blank=+", "");
        assert_eq!(asked.path, "/v2:go+on");
        assert_eq!(asked.query("q"), Some("São Paulo"));
        assert_eq!(asked.query("$alt"), Some("json;enum-encoding=int"));
        assert_eq!(asked.query("bad"), Some("%zz%4"));
        assert_eq!(asked.query("blank"), None);
    }

    #[test]
    fn credentials_are_read_by_scheme() {
        assert_eq!(asked("/", "Basic QUMxOnNlY3JldA==").basic_user().as_deref(), Some("AC1"));
        assert_eq!(asked("/", "basic a2V5Og").basic_user().as_deref(), Some("key"));
        assert_eq!(asked("/", "Basic Og==").basic_user(), None);
        assert_eq!(asked("/", "Basic !!").basic_user(), None);
        assert_eq!(asked("/", "Bearer sk_1").bearer(), Some("sk_1"));
        assert_eq!(asked("/", "Bearer ").bearer(), None);
    }
}
