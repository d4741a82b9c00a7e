//! What is looked at in every parsed request before the handler has it.

use http::header::{HOST, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderValue, Method, Request, Version};

use super::fault::Fault;

/// May the handler see it?
pub(super) fn admit<B>(request: &Request<B>) -> Result<(), Fault> {
    if request.method() == Method::CONNECT {
        return Err(Fault::Connect);
    }
    check_coding(request)?;
    check_host(request)
}

/// `chunked` and nothing else: we undo no other transfer coding, and one named twice is a trick.
fn check_coding<B>(request: &Request<B>) -> Result<(), Fault> {
    let mut codings = request.headers().get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(Fault::Malformed),
    }
}

/// One Host, equal to the target's authority if it names one. HTTP/1.0 may go without, HTTP/2 has `:authority`.
fn check_host<B>(request: &Request<B>) -> Result<(), Fault> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let authority = request.uri().authority();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_host(host) && authority.is_none_or(|authority| is_same(host, authority)) => Ok(()),
        (None, None) if request.version() < Version::HTTP_11 => Ok(()),
        (None, None) if request.version() > Version::HTTP_11 && authority.is_some() => Ok(()),
        _ => Err(Fault::BadHost),
    }
}

fn is_same(host: &HeaderValue, authority: &Authority) -> bool {
    host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes())
}

/// Something that can be a host and a port: no user, no path, no list.
fn is_host(host: &HeaderValue) -> bool {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-'..=b'.' | b':' | b'[' | b']' | b'_' | b'%');
    !host.is_empty() && host.as_bytes().iter().all(|byte| in_name(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(version: Version, method: &str, target: &str, headers: &[(&str, &str)]) -> Result<(), Fault> {
        let mut request = Request::builder().version(version).method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        admit(&request.body(()).unwrap())
    }

    #[test]
    fn one_host_that_is_the_targets() {
        let with = |target, headers: &[_]| verdict(Version::HTTP_11, "GET", target, headers);
        assert_eq!(with("/", &[("host", "a.example:80")]), Ok(()));
        assert_eq!(with("/", &[("host", "[::1]:8080")]), Ok(()));
        assert_eq!(with("http://a.example/", &[("host", "A.example")]), Ok(()));
        assert_eq!(with("http://a.example/", &[("host", "b.example")]), Err(Fault::BadHost));
        assert_eq!(with("/", &[]), Err(Fault::BadHost));
        assert_eq!(with("/", &[("host", "a"), ("host", "a")]), Err(Fault::BadHost));
        for host in ["", "a b", "a,b", "user@a", "a/b", "ä"] {
            assert_eq!(with("/", &[("host", host)]), Err(Fault::BadHost), "{host:?}");
        }
    }

    #[test]
    fn older_and_newer_versions_may_name_it_elsewhere() {
        assert_eq!(verdict(Version::HTTP_10, "GET", "/", &[]), Ok(()));
        assert_eq!(verdict(Version::HTTP_2, "GET", "http://a.example/", &[]), Ok(()));
        assert_eq!(verdict(Version::HTTP_2, "GET", "/", &[]), Err(Fault::BadHost));
    }

    #[test]
    fn tunnels_and_codings_are_refused() {
        assert_eq!(verdict(Version::HTTP_11, "CONNECT", "a.example:80", &[("host", "a.example:80")]), Err(Fault::Connect));
        let coded = |coding| verdict(Version::HTTP_11, "POST", "/", &[("host", "a"), ("transfer-encoding", coding)]);
        assert_eq!(coded("Chunked"), Ok(()));
        assert_eq!(coded("identity, chunked"), Err(Fault::Malformed));
        assert_eq!(coded("chunked, chunked"), Err(Fault::Malformed));
    }
}
