//! Decimal numbers as text: no floats, no loss, no number too large to compare.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::Invalid;

/// Most characters of a number that is read.
const MAX_LENGTH: usize = 256;

/// Most digits before the point, and most decimal places, of a number that is written plain.
const MAX_DIGITS: i64 = 40;

/// A decimal number. Equal numbers are equal however they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decimal {
    /// Never set for zero.
    negative: bool,
    /// ASCII digits without zeros at either end; empty for zero. The value is 0.DIGITS × 10^point.
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    fn new(negative: bool, digits: &[u8], point: i64) -> Self {
        let zeros = digits.iter().take_while(|d| **d == b'0').count();
        let end = digits.iter().rposition(|d| *d != b'0').map_or(0, |at| at.saturating_add(1));
        let digits = digits.get(zeros..end).unwrap_or_default().to_vec();
        if digits.is_empty() {
            return Self::default();
        }
        Self { negative, digits, point: point.saturating_sub(length(zeros)) }
    }

    /// The nearest number with so many decimal places; of two, the even one.
    #[must_use]
    pub fn round(&self, places: u32) -> Self {
        let kept = self.point.saturating_add(i64::from(places));
        let Ok(kept) = usize::try_from(kept) else { return Self::default() };
        let Some((head, tail)) = self.digits.split_at_checked(kept) else { return self.clone() };
        let odd = head.last().is_some_and(|d| d % 2 == 1);
        let up = match tail.cmp(b"5") {
            Ordering::Less => false,
            Ordering::Equal => odd,
            Ordering::Greater => true,
        };
        if up { self.with_next(head) } else { Self::new(self.negative, head, self.point) }
    }

    /// `head` with its last digit raised by one.
    fn with_next(&self, head: &[u8]) -> Self {
        let nines = head.iter().rev().take_while(|d| **d == b'9').count();
        let mut digits = head.get(..head.len().saturating_sub(nines)).unwrap_or_default().to_vec();
        match digits.last_mut() {
            Some(last) => {
                *last = last.saturating_add(1);
                Self::new(self.negative, &digits, self.point)
            }
            // All nines, or nothing kept: 0.99 and 0.6 are rounded to one in the place before.
            None => Self::new(self.negative, b"1", self.point.saturating_add(1)),
        }
    }

    /// Whether it can be written in full.
    pub(crate) fn is_short(&self) -> bool {
        self.point <= MAX_DIGITS && length(self.digits.len()).saturating_sub(self.point) <= MAX_DIGITS
    }

    /// The whole number this is, if it is one and fits.
    pub(crate) fn integer(&self) -> Option<i64> {
        if self.point > 19 || length(self.digits.len()) > self.point {
            return if self.digits.is_empty() { Some(0) } else { None };
        }
        self.to_string().parse().ok()
    }

    /// Whole seconds and the nanoseconds beyond, of one sign, if it has no more than nine places.
    pub(crate) fn nanos(&self) -> Option<(i64, i32)> {
        if self.round(9) != *self {
            return None;
        }
        let plain = self.to_string();
        let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
        let nanos: i32 = format!("{fraction:0<9}").parse().ok()?;
        Some((whole.parse().ok()?, if self.negative { nanos.checked_neg()? } else { nanos }))
    }

    /// One text for one number, of any size: `-123e4` for -0.123 × 10^4.
    pub(crate) fn scientific(&self) -> String {
        let digits = String::from_utf8_lossy(&self.digits);
        if self.digits.is_empty() { "0".to_owned() } else { format!("{}{digits}e{}", sign(self.negative), self.point) }
    }

    fn cmp_size(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (false, false) => self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits)),
            (mine, others) => others.cmp(&mine),
        }
    }
}

fn sign(negative: bool) -> &'static str {
    if negative { "-" } else { "" }
}

fn length(of: usize) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_size(other),
            (true, true) => other.cmp_size(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        let digits = number.unsigned_abs().to_string();
        Self::new(number < 0, digits.as_bytes(), length(digits.len()))
    }
}

impl FromStr for Decimal {
    type Err = Invalid;

    /// Sign, digits with a point, exponent (`+1.50e-3`, `.5`, `5.`), and nothing else.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("must be a decimal number");
        if text.len() > MAX_LENGTH {
            return Err(Invalid::new("is too long for a number"));
        }
        let (negative, rest) = split_sign(text);
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent).ok_or_else(wrong)?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        Ok(Self::new(negative, digits.as_bytes(), length(whole.len()).saturating_add(exponent)))
    }
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// An exponent, cut to a size at which any number is beyond all bounds, or zero.
fn read_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse().unwrap_or(i64::MAX).min(1 << 40);
    Some(if negative { size.saturating_neg() } else { size })
}

impl fmt::Display for Decimal {
    /// Plain: no exponent, no needless zeros, `0` for zero. A number too long for that is written in scientific form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_short() {
            return f.write_str(&self.scientific());
        }
        let digits = String::from_utf8_lossy(&self.digits);
        let mut plain = format!("{}{}", sign(self.negative), if self.point <= 0 { "0" } else { "" });
        let whole = usize::try_from(self.point).unwrap_or(0);
        let (head, tail) = digits.split_at_checked(whole).unwrap_or((&digits, ""));
        plain.push_str(head);
        plain.extend(std::iter::repeat_n('0', whole.saturating_sub(head.len())));
        if !tail.is_empty() {
            let zeros = usize::try_from(self.point.saturating_neg()).unwrap_or(0);
            plain.push('.');
            plain.extend(std::iter::repeat_n('0', zeros));
            plain.push_str(tail);
        }
        f.write_str(&plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn one_number_has_one_plain_rendering() {
        let table = [
            ("0", "0"),
            ("-0", "0"),
            ("+0.000e9", "0"),
            ("0e99999999999999999999", "0"),
            ("007", "7"),
            ("1.50", "1.5"),
            ("10", "10"),
            ("10.0", "10"),
            ("1e1", "10"),
            ("1E+1", "10"),
            ("100e-1", "10"),
            (".5", "0.5"),
            ("5.", "5"),
            ("-0.00120", "-0.0012"),
            ("12345e-2", "123.45"),
        ];
        for (text, plain) in table {
            assert_eq!(number(text).to_string(), plain, "{text}");
            assert_eq!(number(text), number(plain), "{text}");
        }
    }

    #[test]
    fn sign_zeros_exponent_and_nothing_else() {
        for text in
            ["", "+", "-", ".", "e1", "1e", "1e+", "1e1.5", "--1", "1_0", "1,5", "0x1", "NaN", "inf", " 1", "1..2", "1e1e1"]
        {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
        assert!("1".repeat(MAX_LENGTH + 1).parse::<Decimal>().is_err());
    }

    #[test]
    fn halves_round_to_even_on_the_text() {
        let table = [
            ("0.5", 0, "0"),
            ("1.5", 0, "2"),
            ("2.5", 0, "2"),
            ("2.50000000000000000000000000001", 0, "3"),
            ("-2.5", 0, "-2"),
            ("-0.4", 0, "0"),
            ("0.05", 1, "0"),
            ("0.051", 1, "0.1"),
            ("0.06", 1, "0.1"),
            ("0.006", 1, "0"),
            ("0.15", 1, "0.2"),
            ("0.25", 1, "0.2"),
            ("2.675", 2, "2.68"),
            ("1.005", 2, "1"),
            ("9.995", 2, "10"),
            ("0.999", 2, "1"),
            ("0.6", 0, "1"),
            ("99.6", 0, "100"),
            ("123.456", 5, "123.456"),
            ("1e-400", 5, "0"),
        ];
        for (text, places, right) in table {
            assert_eq!(number(text).round(places).to_string(), right, "{text} to {places}");
        }
    }

    #[test]
    fn comparing_is_exact_and_never_blows_up() {
        let rising =
            ["-1e400", "-10", "-9.99", "-1e-400", "0", "1e-400", "0.1", "0.11", "2", "10", "10.0000000000000000001", "1e400"];
        for (low, high) in rising.iter().zip(rising.iter().skip(1)) {
            assert!(number(low) < number(high), "{low} {high}");
        }
    }

    #[test]
    fn whole_numbers_are_found_in_any_spelling() {
        let table = [("1e3", Some(1000)), ("10.0", Some(10)), ("0.5", None), ("-0", Some(0)), ("1e19", None), ("1e400", None)];
        for (text, right) in table {
            assert_eq!(number(text).integer(), right, "{text}");
        }
        assert_eq!(number("-9223372036854775808").integer(), Some(i64::MIN));
        assert_eq!(number("9223372036854775808").integer(), None);
        assert_eq!(Decimal::from(i64::MIN).integer(), Some(i64::MIN));
    }
}
