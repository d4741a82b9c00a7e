//! The key form of text.

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::decompose_compatible;

use super::chars::{ascii_digit, in_word, is_fraction, is_ignorable, is_joiner, is_letter_number};
use super::spaced::{Spaced, is_spaced};

const CASES: CaseMapperBorrowed<'static> = CaseMapper::new();

/// What asked text is compared by: NFKC, full case fold, NFKC again (one pass is not stable), with these exceptions.
///
/// - A vulgar fraction stands apart from a word before or behind it: `537½` is `537 1/2` and not `5371/2`.
/// - Superscript, subscript, circled, bracketed and dotted numbers stay what they are: `10²` is not `102`. Roman numerals fold.
/// - Decimal digits of any script are ASCII digits.
/// - Default-ignorable characters are dropped, ZWJ and ZWNJ only outside words.
/// - Hyphen, non-breaking hyphen, figure dash, en dash and minus sign are `-`: Japanese keyboards and word processors write
///   them for it. U+2019 is `'`.
/// - White space around a comma means nothing.
///
/// Letters with and without accents stay apart, and so do look-alikes of different scripts.
#[must_use]
pub fn key(asked: &str) -> String {
    if asked.is_ascii() { key_ascii(asked) } else { key_unicode(asked) }
}

/// What [`key_unicode`] makes of ASCII: the way of nearly every hit. What is asked has its white space collapsed already.
fn key_ascii(asked: &str) -> String {
    debug_assert!(is_spaced(asked), "not what is asked");
    let mut out = String::with_capacity(asked.len());
    for (at, piece) in asked.split(',').enumerate() {
        if at > 0 {
            out.push(',');
        }
        let piece = piece.strip_prefix(' ').unwrap_or(piece);
        out.push_str(piece.strip_suffix(' ').unwrap_or(piece));
    }
    out.make_ascii_lowercase();
    out
}

/// The key of any text, ASCII or not.
pub(super) fn key_unicode(asked: &str) -> String {
    let folded = compose(&CASES.fold_string(&compose(asked)));
    tidy(folded.chars().map(plain), folded.len())
}

/// NFKC with the same exceptions and the letter case kept, for typed values. Commas keep their spaces.
pub fn narrow(asked: &str) -> String {
    compose(&compose(asked)).chars().map(plain).collect::<Spaced>().into()
}

fn tidy(chars: impl Iterator<Item = char>, bytes: usize) -> String {
    let mut out = Spaced::with_capacity(bytes);
    chars.for_each(|c| out.push_key(c));
    out.into()
}

/// The one spelling of digits, dashes, slash and apostrophe.
fn plain(c: char) -> char {
    match c {
        _ if c.is_ascii() => c,
        '\u{2010}'..='\u{2013}' | '\u{2212}' => '-',
        '\u{2019}' => '\'',
        '\u{2044}' => '/',
        _ => ascii_digit(c).unwrap_or(c),
    }
}

/// NFKC, but for the exceptions.
fn compose(text: &str) -> String {
    decompose(text).nfc().collect()
}

fn decompose(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(8));
    let mut chars = text.chars().filter(|c| !is_ignorable(*c)).peekable();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        if is_joiner(c) {
            while chars.next_if(|c| is_joiner(*c)).is_some() {}
            if joins(last) && chars.peek().is_some_and(|c| joins(*c)) {
                out.push(c);
            }
            continue;
        }
        if stand_apart(last, c) {
            out.push(' ');
        }
        spell_out(c, &mut out);
        last = c;
    }
    out
}

/// Whether a joiner beside `c` may be inside a word.
fn joins(c: char) -> bool {
    in_word(c) && !is_fraction(c)
}

/// Whether one of two neighbours is a fraction that must not run into the other. `⅟` waits for its denominator.
fn stand_apart(last: char, c: char) -> bool {
    let fraction = is_fraction(c) || is_fraction(last) && last != '\u{215F}';
    fraction && in_word(last) && in_word(c)
}

/// Writes the compatibility decomposition of `c`, or `c` itself where that would make a number of something else.
fn spell_out(c: char, out: &mut String) {
    if c.is_ascii() || is_number_apart(c) {
        return out.push(c);
    }
    let start = out.len();
    decompose_compatible(c, |part| out.push(part));
    let made = out.get(start..).unwrap_or_default();
    let digits = made.bytes().any(|b| b.is_ascii_digit());
    if digits && !is_fraction(c) && ascii_digit(c).is_none() {
        out.truncate(start);
        out.push(c);
    }
}

/// A number that is neither a decimal digit, nor a fraction, nor written in letters: `²`, `①`, `㈠`.
fn is_number_apart(c: char) -> bool {
    c.is_numeric() && ascii_digit(c).is_none() && !is_fraction(c) && !is_letter_number(c)
}
