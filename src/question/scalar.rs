//! Numbers, flags and words.

use std::collections::BTreeMap;

use serde_json::{Number, Value as Json};

use super::{Decimal, Invalid, Raw, Value, text};

/// A whole number, however it is written: `10`, `+10`, `10.0`, `1e1`.
pub fn integer(raw: &str, min: Option<i64>, max: Option<i64>) -> Result<Value, Invalid> {
    let number: Decimal = text::typed(raw)?.parse().map_err(|_| Invalid::new("must be a whole number"))?;
    let Some(whole) = number.integer() else { return Err(Invalid::new("must be a whole number within 64 bits")) };
    bounds(&whole, min.as_ref(), max.as_ref())?;
    Ok(Value::typed(whole.to_string(), Json::from(whole)))
}

/// A decimal number. The bounds hold as given and as rounded.
pub fn decimal(raw: &str, min: Option<&Decimal>, max: Option<&Decimal>, places: u32) -> Result<Value, Invalid> {
    let (number, plain) = rounded(raw, min, max, places)?;
    let json = json_number(&number);
    Ok(Value::typed(plain, json))
}

/// A number within bounds, rounded, with its plain text.
pub fn rounded(raw: &str, min: Option<&Decimal>, max: Option<&Decimal>, places: u32) -> Result<(Decimal, String), Invalid> {
    let number: Decimal = text::typed(raw)?.parse()?;
    bounds(&number, min, max)?;
    let number = number.round(places);
    bounds(&number, min, max)?;
    if !number.is_short() {
        return Err(Invalid::new("has too many digits"));
    }
    let plain = number.to_string();
    Ok((number, plain))
}

/// The number as JSON writes it: an integer if it is one.
pub fn json_number(number: &Decimal) -> Json {
    match number.integer() {
        Some(whole) => Json::from(whole),
        None => number.to_string().parse::<Number>().map_or(Json::Null, Json::Number),
    }
}

fn bounds<T: Ord + ToString>(number: &T, min: Option<&T>, max: Option<&T>) -> Result<(), Invalid> {
    match (min, max) {
        (Some(min), _) if number < min => Err(Invalid::new(format!("must be at least {}", min.to_string()))),
        (_, Some(max)) if number > max => Err(Invalid::new(format!("must be at most {}", max.to_string()))),
        _ => Ok(()),
    }
}

/// `true`, `yes`, `1` and `false`, `no`, `0`, in any letter case; in JSON also the flag itself.
pub fn boolean(raw: &Raw<'_>) -> Result<Value, Invalid> {
    const WORDS: [(&str, bool); 6] = [("true", true), ("false", false), ("1", true), ("0", false), ("yes", true), ("no", false)];
    let flag = match raw {
        Raw::Json(Json::Bool(flag)) => Some(*flag),
        Raw::Json(Json::Number(_)) => WORDS.iter().find(|w| raw.string_or_number().is_ok_and(|n| n == w.0)).map(|w| w.1),
        _ => {
            let word = text::typed(raw.string()?)?;
            WORDS.iter().find(|w| w.0.eq_ignore_ascii_case(&word)).map(|w| w.1)
        }
    };
    let flag = flag.ok_or_else(|| Invalid::new("must be true or false"))?;
    Ok(Value::typed(flag.to_string(), Json::Bool(flag)))
}

/// One of `values`, or an alias of one. An exact match goes before one in another letter case.
pub fn choice(raw: &str, values: &[String], aliases: &BTreeMap<String, String>) -> Result<Value, Invalid> {
    let word = text::typed(raw)?;
    let number = word.parse::<Decimal>().map(|n| n.to_string()).ok();
    let value = values.iter().find(|v| **v == *word);
    let value = value.or_else(|| aliases.get(&*word));
    let value = value.or_else(|| values.iter().find(|v| v.eq_ignore_ascii_case(&word)));
    let value = value.or_else(|| aliases.iter().find(|(a, _)| a.eq_ignore_ascii_case(&word)).map(|(_, v)| v));
    let value = value.or_else(|| number.and_then(|n| aliases.get(&n)));
    value.map(|v| Value::plain(v.clone())).ok_or_else(|| Invalid::new(format!("must be {}", offer(values))))
}

/// The first words, for the reason of a refusal.
fn offer(values: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut words: Vec<_> = values.iter().take(SHOWN).map(String::as_str).collect();
    if values.len() > SHOWN {
        words.push("..");
    }
    if let [one] = words.as_slice() { (*one).to_owned() } else { format!("one of {}", words.join(", ")) }
}

#[cfg(test)]
mod tests;
