//! Money: integer micro-units with a currency. No floats anywhere.
//!
//! What a call costs (`price`), and how much may be spent in which window (`budget`, [`window`]). What is reserved and spent is
//! the store's to keep ([`crate::store::money`]).

use std::fmt;

use crate::config::units::text_setting;

pub(crate) mod bill;
pub(crate) mod budget;
pub(crate) mod cost;
pub(crate) mod found;
pub(crate) mod price;
pub(crate) mod report;
pub(crate) mod savings;
pub(crate) mod toll;
pub mod window;

pub(crate) use budget::Budget;
pub(crate) use price::{Price, PricedBy};

/// An amount of money, never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    /// Millionths of the currency's unit.
    pub micros: u64,
    /// ISO 4217 code.
    pub currency: Currency,
}

/// An ISO 4217 alphabetic code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The code as text.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 3] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(u8::is_ascii_uppercase).then_some(Self(bytes))
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Money {
    /// Reads an exact decimal with its currency, such as `0.005 USD`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an amount");
        let (amount, currency) = text.split_once(' ').ok_or_else(wrong)?;
        let currency = Currency::parse(currency.trim()).ok_or_else(|| format!("{text:?} names no currency"))?;
        let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(wrong());
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 6 {
            return Err(format!("{text:?} is finer than a millionth"));
        }
        let fraction: u64 = format!("{fraction:0<6}").parse().map_err(|_| wrong())?;
        let micros = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1_000_000)?.checked_add(fraction));
        // Exact in a store whose numbers are doubles, too.
        match micros.filter(|micros| *micros < 1 << 53) {
            Some(micros) => Ok(Self { micros, currency }),
            None => Err(format!("{text:?} is too much")),
        }
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", decimal(self.micros), self.currency.code())
    }
}

/// Micro-units as the shortest exact decimal.
pub(crate) fn decimal(micros: u64) -> String {
    let (whole, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let fraction = format!("{fraction:06}");
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{whole}{point}{fraction}")
}

text_setting!(
    Money,
    "write an exact amount with its currency, such as \"0.005 USD\"",
    "an amount of money",
    Money::parse,
    ToString::to_string
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        for (text, micros) in
            [("0.005 USD", 5_000), ("1 EUR", 1_000_000), ("0.000001 USD", 1), ("0.10 USD", 100_000), ("0 USD", 0)]
        {
            assert_eq!(Money::parse(text).unwrap().micros, micros, "{text}");
        }
        assert_eq!(Money::parse("0.0050 USD").unwrap().to_string(), "0.005 USD");
        assert_eq!(Money::parse("12 JPY").unwrap().to_string(), "12 JPY");
    }

    #[test]
    fn odd_amounts_are_refused() {
        for wrong in [
            "",
            "1",
            "-1 USD",
            "NaN USD",
            "1e400 USD",
            "0.0000001 USD",
            "9223372036854775808 USD",
            "1 usd",
            "1 US",
            ".5 USD",
            "1. USD",
        ] {
            assert!(Money::parse(wrong).is_err(), "{wrong}");
        }
    }
}
