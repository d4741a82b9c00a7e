use super::*;

fn pairs(query: &str) -> Result<Vec<(String, String)>, Malformed> {
    Ok(parse_query(query)?.into_iter().map(|(n, v)| (n.into_owned(), v.into_owned())).collect())
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    encode(text, &mut out);
    out
}

#[test]
fn n_03_a_query_is_decoded_once() {
    let table: [(&str, &[(&str, &str)]); 8] = [
        ("", &[]),
        ("&&", &[]),
        ("a=1&b=2&a=3", &[("a", "1"), ("b", "2"), ("a", "3")]),
        ("a&b=&=c", &[("a", ""), ("b", ""), ("", "c")]),
        ("a=b=c", &[("a", "b=c")]),
        ("q=12+Any+St+%23211", &[("q", "12 Any St #211")]),
        ("q=bn20%2B8qt%26x%3d%252B", &[("q", "bn20+8qt&x=%2B")]),
        ("caf%C3%A9=%c3%a9é", &[("café", "éé")]),
    ];
    for (query, right) in table {
        let right: Vec<_> = right.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        assert_eq!(pairs(query), Ok(right), "{query}");
    }
}

#[test]
fn h_04_bad_encoding_is_never_repaired() {
    for text in ["%", "%z", "%zz", "%4", "%ff", "%C3", "%C3%28", "%ED%A0%80", "%C0%AF", "%+1", "a%", "%E2%82"] {
        assert_eq!(pairs(&format!("q={text}")), Err(Malformed::BadEncoding), "{text}");
        assert_eq!(pairs(&format!("{text}=x")), Err(Malformed::BadEncoding), "{text}");
        assert_eq!(decode_segments(&format!("/v1/{text}/x")), Err(Malformed::BadEncoding), "{text}");
    }
    assert!(Malformed::BadEncoding.is_encoding() && !Malformed::DotSegment.is_encoding());
}

#[test]
fn h_04_a_path_has_one_decoded_form() {
    let table: [(&str, &[&str]); 9] = [
        ("/", &[""]),
        ("/v1/geocode", &["v1", "geocode"]),
        ("/%761/geo%63ode", &["v1", "geocode"]),
        ("/v1/geocode/", &["v1", "geocode", ""]),
        ("/V1/GEOCODE", &["V1", "GEOCODE"]),
        ("/v1/geocode;x", &["v1", "geocode;x"]),
        ("/v1/a+b%20c", &["v1", "a+b c"]),
        ("/v1/%252e%252e%252f", &["v1", "%2e%2e%2f"]),
        ("/v1/...", &["v1", "..."]),
    ];
    for (path, right) in table {
        assert_eq!(decode_segments(path).unwrap(), right, "{path}");
    }
}

#[test]
fn h_04_a_path_that_could_be_another_is_refused() {
    let table = [
        ("", Malformed::NotAbsolute),
        ("*", Malformed::NotAbsolute),
        ("v1", Malformed::NotAbsolute),
        ("/v1/geocode/..%2f..%2fadmin/kill", Malformed::Separator),
        ("/v1/%2e%2e/admin", Malformed::DotSegment),
        ("/v1/%2E./admin", Malformed::DotSegment),
        ("/v1/./geocode", Malformed::DotSegment),
        ("/v1/..;x/admin", Malformed::DotSegment),
        ("/..", Malformed::DotSegment),
        ("/v1/..\\admin", Malformed::Separator),
        ("/v1/a%5Cb", Malformed::Separator),
        ("//admin", Malformed::EmptySegment),
        ("/v1//geocode", Malformed::EmptySegment),
        ("/v1//", Malformed::EmptySegment),
        ("/v1/a%00", Malformed::Control),
        ("/v1/a%0d%0a", Malformed::Control),
        ("/v1/a%C2%85", Malformed::Control),
    ];
    for (path, right) in table {
        assert_eq!(decode_segments(path), Err(right), "{path}");
    }
}

#[test]
fn n_03_everything_but_unreserved_is_encoded() {
    assert_eq!(encoded("aZ09-._~"), "aZ09-._~");
    assert_eq!(encoded("12 Any St #211&'+%=/?é"), "12%20Any%20St%20%23211%26%27%2B%25%3D%2F%3F%C3%A9");
}

#[test]
fn a_segment_is_never_another_path() {
    for text in ["", ".", "..", "a/b", "a\\b", "a\n", "..;a"] {
        assert!(encode_segment(text, &mut String::new()).is_err(), "{text}");
    }
    let mut out = String::new();
    encode_segment("a b", &mut out).unwrap();
    assert_eq!(out, "a%20b");
}
