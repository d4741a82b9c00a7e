//! White space: runs are one U+0020, the ends have none.

/// Text being written with its white space collapsed.
#[derive(Debug, Default)]
pub struct Spaced {
    out: String,
    /// White space seen since the last character.
    gap: bool,
}

impl Spaced {
    /// Nothing yet, with room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes), gap: false }
    }

    /// Writes `c`, after one space if white space came before it.
    pub fn push(&mut self, c: char) {
        if c.is_whitespace() {
            self.gap = true;
            return;
        }
        if self.gap && !self.out.is_empty() {
            self.out.push(' ');
        }
        self.gap = false;
        self.out.push(c);
    }

    /// Writes `c`, with no space before it or after a comma: in a key, `22 , 6412` is `22,6412`.
    pub fn push_key(&mut self, c: char) {
        if c == ',' || self.out.ends_with(',') && !c.is_whitespace() {
            self.gap = false;
        }
        self.push(c);
    }
}

impl FromIterator<char> for Spaced {
    fn from_iter<I: IntoIterator<Item = char>>(chars: I) -> Self {
        let chars = chars.into_iter();
        let mut spaced = Self::with_capacity(chars.size_hint().0);
        chars.for_each(|c| spaced.push(c));
        spaced
    }
}

impl From<Spaced> for String {
    fn from(spaced: Spaced) -> Self {
        spaced.out
    }
}

/// Whether ASCII text is so already, and holds no control characters.
pub fn is_spaced(text: &str) -> bool {
    let controls = text.bytes().any(|byte| byte.is_ascii_control());
    !controls && !text.contains("  ") && !text.starts_with(' ') && !text.ends_with(' ')
}
