//! Text of others that is shown to people: in a switch's reason, in a log.

use crate::question::text::{is_dropped, is_refused};

/// At most `most` characters, without what a terminal or a page would obey instead of show; white space is a space.
pub(super) fn clean(text: &str, most: usize) -> String {
    let shown = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    let mut shown = shown.filter(|c| !is_refused(*c) && !is_dropped(*c));
    let mut cut: String = shown.by_ref().take(most).collect();
    if shown.next().is_some() {
        cut.push('…');
    }
    cut.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed_and_nothing_is_long() {
        assert_eq!(clean("Maps\n budget", 60), "Maps  budget");
        assert_eq!(clean("\u{1b}[31mred\u{202e}\u{0}\u{9b}", 60), "[31mred");
        assert_eq!(clean("äöü…", 3), "äöü…");
        assert_eq!(clean(" \u{200b} ", 9), "");
    }
}
