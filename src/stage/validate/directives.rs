//! What a caller may ask of the gateway itself: `Cache-Control` (RFC 9111 section 5.2.1) and `X-Request-Timeout`.

use std::time::Duration;

use http::{HeaderMap, HeaderName, header};

use crate::call::Directives;
use crate::refusal::{Code, Refusal};

static REQUEST_TIMEOUT: HeaderName = HeaderName::from_static("x-request-timeout");

/// The request's `Cache-Control`. What is not understood is ignored, as the standard asks.
pub(super) fn cache_control(headers: &HeaderMap) -> Directives {
    let mut directives = Directives::default();
    let lines = headers.get_all(header::CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    for directive in lines.flat_map(|line| line.split(',')).map(str::trim) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.to_ascii_lowercase().as_str() {
            "no-cache" => directives.refresh = true,
            "only-if-cached" => directives.only_if_cached = true,
            "max-age" => match value.trim_matches('"').parse::<u64>() {
                Ok(0) => directives.refresh = true,
                Ok(seconds) => directives.max_age = Some(Duration::from_secs(seconds)),
                Err(_) => {}
            },
            _ => {}
        }
    }
    directives
}

/// How long this caller waits: the route's deadline, or less if it says so.
pub(super) fn wait(headers: &HeaderMap, deadline: Duration) -> Result<Duration, Refusal> {
    let Some(value) = headers.get(&REQUEST_TIMEOUT) else { return Ok(deadline) };
    let seconds = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok()).filter(|seconds| *seconds > 0);
    match seconds {
        Some(seconds) => Ok(deadline.min(Duration::from_secs(seconds))),
        None => Err(Refusal::field(Code::InvalidQuestion, "X-Request-Timeout", "must be whole seconds, above zero")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Directives {
        let mut headers = HeaderMap::new();
        headers.insert(header::CACHE_CONTROL, text.parse().unwrap());
        cache_control(&headers)
    }

    #[test]
    fn directives() {
        assert!(read("no-cache").refresh && read("Max-Age=0").refresh && read("max-age=\"0\"").refresh);
        assert!(read("max-age=5, only-if-cached").only_if_cached);
        assert_eq!(read("max-age=5").max_age, Some(Duration::from_secs(5)));
        assert_eq!(read("max-age=-1, what=ever, ,"), Directives::default());
    }

    #[test]
    fn a_caller_may_only_shorten_its_wait() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-request-timeout", text.parse().unwrap());
            wait(&headers, Duration::from_secs(15)).map_err(|refusal| refusal.code)
        };
        assert_eq!(of("2"), Ok(Duration::from_secs(2)));
        assert_eq!(of("60"), Ok(Duration::from_secs(15)));
        for wrong in ["0", "-1", "1.5", "soon", "99999999999999999999999"] {
            assert_eq!(of(wrong), Err(Code::InvalidQuestion), "{wrong}");
        }
    }
}
