//! Properties of characters that neither std nor `unicode-normalization` has. Unicode 18.

use unicode_normalization::char::is_combining_mark;

/// The zero of every decimal digit set (general category Nd); its nine followers are the other digits.
#[rustfmt::skip]
const ZEROS: [u32; 77] = [
    0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6,
    0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40,
    0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x10D40, 0x11066,
    0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x116D0, 0x116DA, 0x11730, 0x118E0,
    0x11950, 0x11BF0, 0x11C50, 0x11D50, 0x11DA0, 0x11DE0, 0x11F50, 0x16130, 0x16A60, 0x16AC0, 0x16B50, 0x16D70,
    0x1CCF0, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E4F0, 0x1E5F1, 0x1E950, 0x1FBF0,
];

/// The ASCII digit a decimal digit of any script stands for.
pub fn ascii_digit(c: char) -> Option<char> {
    let code = u32::from(c);
    let zero = ZEROS.get(ZEROS.partition_point(|zero| *zero <= code).checked_sub(1)?)?;
    char::from_digit(code.checked_sub(*zero)?, 10)
}

/// Refused in any text: controls that are no white space, tag characters, noncharacters.
pub fn is_refused(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !c.is_whitespace();
    }
    let noncharacter = matches!(c, '\u{FDD0}'..='\u{FDEF}') || u32::from(c) & 0xFFFE == 0xFFFE;
    noncharacter || matches!(c, '\u{E0000}'..='\u{E007F}') || c.is_control() && !c.is_whitespace()
}

/// Dropped from any text: controls of direction, zero-width space, byte order mark, soft hyphen.
pub fn is_dropped(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{61C}' | '\u{200B}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}')
        || matches!(c, '\u{2066}'..='\u{206F}' | '\u{FEFF}')
}

/// The joiners of Persian and Indic words, which stay inside words.
pub fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200C}' | '\u{200D}')
}

/// Dropped from keys: what Unicode calls default-ignorable, but for the joiners.
#[rustfmt::skip]
pub fn is_ignorable(c: char) -> bool {
    c >= '\u{AD}' && !is_joiner(c) && matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// Vulgar fractions: `½`, `⅟`, `↉`.
pub fn is_fraction(c: char) -> bool {
    matches!(c, '\u{BC}'..='\u{BE}' | '\u{2150}'..='\u{215F}' | '\u{2189}')
}

/// Roman numerals and the Hangzhou tens, which are letters to whoever reads them: the only numbers besides decimal digits
/// that a key folds.
pub fn is_letter_number(c: char) -> bool {
    matches!(c, '\u{2160}'..='\u{2188}' | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303A}')
}

/// Whether `c` is part of a word: letter, number or combining mark.
pub fn in_word(c: char) -> bool {
    c.is_alphanumeric() || !c.is_ascii() && is_combining_mark(c)
}
