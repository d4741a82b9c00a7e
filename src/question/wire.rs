//! Percent-encoding: decoded once, strictly, never repaired.

use std::borrow::Cow;

/// Why a path or query is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not percent-encoding, or not UTF-8 once decoded.
    #[error("bad percent-encoding or UTF-8")]
    BadEncoding,
    /// The path does not begin with `/`.
    #[error("the path must begin with /")]
    NotAbsolute,
    /// A segment `.` or `..`, in any spelling.
    #[error("the path has a dot segment")]
    DotSegment,
    /// A backslash, or an encoded `/` inside a segment.
    #[error("the path has a separator inside a segment")]
    Separator,
    /// A control character.
    #[error("the path has a control character")]
    Control,
    /// Two slashes in a row.
    #[error("the path has an empty segment")]
    EmptySegment,
}

impl Malformed {
    /// Whether it is the client's encoding that is at fault (400), not the path (404).
    #[must_use]
    pub fn is_encoding(self) -> bool {
        self == Self::BadEncoding
    }
}

/// A name and a value, decoded.
pub type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The pairs of a query or form body, in order. `+` is a space, empty pairs are skipped, a name alone has an empty value.
pub fn parse_query(query: &str) -> Result<Vec<Pair<'_>>, Malformed> {
    pairs(query).collect()
}

/// As [`parse_query`], one after the other.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = Result<Pair<'_>, Malformed>> {
    let mut rest = Some(query);
    std::iter::from_fn(move || {
        let (pair, after) = cut(rest?, b'&');
        rest = after;
        Some(pair)
    })
    .filter(|pair| !pair.is_empty())
    .map(|pair| {
        let (name, value) = cut(pair, b'=');
        Ok((decode(name, true)?, decode(value.unwrap_or_default(), true)?))
    })
}

/// What stands before an ASCII separator and what behind it. Every hit passes here, and this search costs a quarter of what
/// `split_once` does.
fn cut(text: &str, separator: u8) -> (&str, Option<&str>) {
    let split = memchr::memchr(separator, text.as_bytes()).and_then(|at| text.split_at_checked(at));
    split.map_or((text, None), |(before, rest)| (before, rest.get(1..)))
}

/// The segments of a path, decoded: the one form for routing, authentication and keys. A slash at the end leaves an empty
/// last segment, so that `/a/` is not `/a`.
pub fn decode_segments(path: &str) -> Result<Vec<Cow<'_, str>>, Malformed> {
    let mut segments = Vec::new();
    let mut rest = path.strip_prefix('/').ok_or(Malformed::NotAbsolute)?.split('/').peekable();
    while let Some(raw) = rest.next() {
        let segment = decode(raw, false)?;
        check_segment(&segment)?;
        if segment.is_empty() && rest.peek().is_some() {
            return Err(Malformed::EmptySegment);
        }
        segments.push(segment);
    }
    Ok(segments)
}

/// What a decoded segment must not be. `..;x` counts as `..`, as some servers read it.
fn check_segment(segment: &str) -> Result<(), Malformed> {
    if matches!(segment.split(';').next(), Some("." | "..")) {
        return Err(Malformed::DotSegment);
    }
    if segment.contains(['/', '\\']) {
        return Err(Malformed::Separator);
    }
    if segment.chars().any(char::is_control) { Err(Malformed::Control) } else { Ok(()) }
}

fn decode(text: &str, form: bool) -> Result<Cow<'_, str>, Malformed> {
    let special = |b: u8| b == b'%' || form && b == b'+';
    if !text.bytes().any(special) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => escaped(&mut bytes).ok_or(Malformed::BadEncoding)?,
            b'+' if form => b' ',
            _ => byte,
        });
    }
    String::from_utf8(out).map(Cow::Owned).map_err(|_| Malformed::BadEncoding)
}

/// The byte that two hexadecimal digits stand for.
fn escaped(bytes: &mut impl Iterator<Item = u8>) -> Option<u8> {
    let mut digit = || char::from(bytes.next()?).to_digit(16);
    u8::try_from(digit()? << 4 | digit()?).ok()
}

/// Appends `text` with everything outside RFC 3986 unreserved percent-encoded: fit for a query name or value.
pub fn encode(text: &str, out: &mut String) {
    out.reserve(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.extend(
                [byte >> 4, byte & 15].into_iter().filter_map(|n| char::from_digit(n.into(), 16)).map(|c| c.to_ascii_uppercase()),
            );
        }
    }
}

/// Appends `name=value` to the pairs of a query or form.
pub(crate) fn encode_pair(name: &str, value: &str, out: &mut String) {
    if !out.is_empty() {
        out.push('&');
    }
    encode(name, out);
    out.push('=');
    encode(value, out);
}

/// As [`encode`], for one segment of a path: nothing that a server would read as another path.
pub fn encode_segment(text: &str, out: &mut String) -> Result<(), Malformed> {
    if text.is_empty() {
        return Err(Malformed::EmptySegment);
    }
    check_segment(text)?;
    encode(text, out);
    Ok(())
}

#[cfg(test)]
mod tests;
