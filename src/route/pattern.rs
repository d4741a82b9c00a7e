//! `METHOD /path/{field}`: where a route is exposed, and which of two patterns a path belongs to.

use http::Method;

/// What `expose` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) method: Method,
    pub(crate) segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Literal(String),
    /// `{name}`: any one segment.
    Field(String),
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (method, path) = text.split_once(' ').ok_or_else(|| format!("{text:?} is not a method and a path"))?;
        let method = match method {
            "GET" => Method::GET,
            "POST" => Method::POST,
            _ => return Err(format!("{method:?} is not a method a route takes")),
        };
        let path = path.trim();
        let Some(rest) = path.strip_prefix('/') else { return Err(format!("{path:?} does not start with /")) };
        let segments = rest.split('/').map(segment).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { method, segments })
    }

    /// Stands for one that could not be read, so that the rest of its route still is. Nothing belongs to it.
    pub(crate) fn unreadable() -> Self {
        Self { method: Method::GET, segments: Vec::new() }
    }

    pub(crate) fn is_readable(&self) -> bool {
        !self.segments.is_empty()
    }

    /// The path as it was written.
    pub(crate) fn path(&self) -> String {
        self.segments.iter().fold(String::new(), |mut path, segment| {
            path.push('/');
            match segment {
                Segment::Literal(text) => path.push_str(text),
                Segment::Field(name) => path.extend(["{", name, "}"]),
            }
            path
        })
    }

    /// Whether some request could belong to both. A literal wins over a field, so `/a/{x}` and `/a/b` do not overlap; `/a/{x}`
    /// and `/{y}/b` do.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        if self.method != other.method || self.segments.len() != other.segments.len() || !self.is_readable() {
            return false;
        }
        let pairs = || self.segments.iter().zip(&other.segments);
        let meet = pairs().all(|(a, b)| match (a, b) {
            (Segment::Literal(a), Segment::Literal(b)) => a == b,
            _ => true,
        });
        let mine = pairs().any(|(a, b)| matches!((a, b), (Segment::Literal(_), Segment::Field(_))));
        let theirs = pairs().any(|(a, b)| matches!((a, b), (Segment::Field(_), Segment::Literal(_))));
        meet && (mine == theirs)
    }

    /// How many segments are literal: of two matching patterns the more literal one wins.
    pub(crate) fn literals(&self) -> usize {
        self.segments.iter().filter(|segment| matches!(segment, Segment::Literal(_))).count()
    }

    /// Whether a decoded path belongs here.
    pub(crate) fn matches<S: AsRef<str>>(&self, path: &[S]) -> bool {
        self.segments.len() == path.len()
            && self.segments.iter().zip(path).all(|(segment, part)| match segment {
                Segment::Literal(text) => text == part.as_ref(),
                Segment::Field(_) => !part.as_ref().is_empty(),
            })
    }

    /// Position of a field in the path.
    pub(crate) fn position(&self, field: &str) -> Option<usize> {
        self.segments.iter().position(|segment| matches!(segment, Segment::Field(name) if name == field))
    }
}

fn segment(text: &str) -> Result<Segment, String> {
    if let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        return Ok(Segment::Field(name.to_owned()));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c);
    if text.is_empty() || text == "." || text == ".." || !text.chars().all(plain) {
        return Err(format!("{text:?} is no path segment"));
    }
    Ok(Segment::Literal(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(a: &str, b: &str) -> bool {
        Pattern::parse(a).unwrap().overlaps(&Pattern::parse(b).unwrap())
    }

    #[test]
    fn overlaps_are_found() {
        assert!(overlap("GET /a", "GET /a"));
        assert!(overlap("GET /a/{x}", "GET /a/{y}"));
        assert!(overlap("GET /a/{x}", "GET /{y}/b"));
        assert!(!overlap("GET /a/{x}", "GET /a/b"), "the literal wins");
        assert!(!overlap("GET /a", "POST /a"));
        assert!(!overlap("GET /a", "GET /a/b"));
    }

    #[test]
    fn odd_patterns_are_refused() {
        for wrong in ["", "GET", "/a", "GET a", "FETCH /a", "GET /a/", "GET /a//b", "GET /a/../b", "GET /a b", "GET /a?x=1"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Pattern::parse("POST /directions/v2:computeRoutes").is_ok());
    }
}
