//! Telephone numbers, E.164.

use super::{Invalid, Value, text};

/// Reads an international number. `00` reads as `+`; `(0)`, punctuation and an extension are dropped.
pub fn read(raw: &str) -> Result<Value, Invalid> {
    let typed = text::typed(raw)?;
    let number = without_extension(&typed).replace("(0)", "");
    let (international, rest) = match number.trim_start_matches('(').strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, number.as_str()),
    };
    if !rest.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | '-' | '.' | '/' | '(' | ')')) {
        return Err(Invalid::new("must be a telephone number"));
    }
    let digits: String = rest.chars().filter(char::is_ascii_digit).collect();
    let digits = if international { Some(digits.as_str()) } else { digits.strip_prefix("00") };
    let digits = digits.ok_or_else(|| Invalid::new("must start with + and the country code"))?;
    if digits.starts_with('0') || !(7..=15).contains(&digits.len()) {
        return Err(Invalid::new("must have a country code and 7 to 15 digits"));
    }
    Ok(Value::plain(format!("+{digits}")))
}

/// `+44 20 7946 0958 ext. 12`, `.. x12`, `..;ext=12`, `.. #12` without what follows the number.
fn without_extension(typed: &str) -> &str {
    let lower = typed.to_ascii_lowercase();
    let marks = [";ext=", "extension", "ext.", "ext", "x", "#"];
    let Some((at, mark)) =
        marks.iter().filter_map(|m| lower.find(m).map(|at| (at, m))).min_by_key(|(at, m)| (*at, usize::MAX - m.len()))
    else {
        return typed;
    };
    let extension = lower.get(at.saturating_add(mark.len())..).unwrap_or_default().trim_start_matches([' ', ':', '.']);
    let digits = !extension.is_empty() && extension.len() <= 11 && extension.bytes().all(|b| b.is_ascii_digit());
    if digits { typed.get(..at).unwrap_or(typed).trim_end_matches([' ', ',']) } else { typed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_number_are_one() {
        let table = [
            "+442079460958",
            "00442079460958",
            "+44 20 7946 0958",
            "+44 (0)20 7946-0958",
            "(+44) 20.7946.0958",
            "+44/20/79460958",
            "＋４４ ２０ ７９４６ ０９５８",
            "+٤٤٢٠٧٩٤٦٠٩٥٨",
            "+44 20 7946\u{2011}0958",
            "\u{202A}+44 20 7946 0958\u{202C}",
            "+44 20 7946 0958 ext. 12",
            "+44 20 7946 0958, x12",
            "+442079460958;ext=12",
            "+44 20 7946 0958 Extension 12",
            "+44 20 7946 0958 #12",
        ];
        for raw in table {
            assert_eq!(read(raw), Ok(Value::plain("+442079460958".into())), "{raw}");
        }
    }

    #[test]
    fn what_is_no_international_number_is_refused() {
        let table = [
            "",
            "+",
            "00",
            "020 7946 0958",
            "442079460958",
            "+0442079460958",
            "+44 20",
            "+1234567890123456",
            "+1 800 FLOWERS",
            "++442079460958",
            "+44+2079460958",
            "+44²0794609580",
            "+44 20 7946 0958 or 9",
            "+44 20 7946 0958 x",
            "ext 12",
            "x1",
            "+44\u{0}2079460958",
            "+44,2079460958",
        ];
        for raw in table {
            assert!(read(raw).is_err(), "{raw:?}");
        }
    }

    #[test]
    fn other_numbers_stay_other() {
        assert_ne!(read("+44 20 7946 0958"), read("+44 20 7946 0959"));
        assert_eq!(read("+1 (201) 555-0123").unwrap().key, "+12015550123");
    }
}
