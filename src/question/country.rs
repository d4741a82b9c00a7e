//! Countries: ISO 3166-1 alpha-2 and country-code top-level domains.

use super::{Invalid, Value, text};

/// The 249 assigned codes, and XK, which Kosovo goes by.
#[rustfmt::skip]
const CODES: [[u8; 2]; 250] = [
    *b"AD", *b"AE", *b"AF", *b"AG", *b"AI", *b"AL", *b"AM", *b"AO", *b"AQ", *b"AR", *b"AS", *b"AT", *b"AU", *b"AW", *b"AX", *b"AZ",
    *b"BA", *b"BB", *b"BD", *b"BE", *b"BF", *b"BG", *b"BH", *b"BI", *b"BJ", *b"BL", *b"BM", *b"BN", *b"BO", *b"BQ", *b"BR", *b"BS",
    *b"BT", *b"BV", *b"BW", *b"BY", *b"BZ", *b"CA", *b"CC", *b"CD", *b"CF", *b"CG", *b"CH", *b"CI", *b"CK", *b"CL", *b"CM", *b"CN",
    *b"CO", *b"CR", *b"CU", *b"CV", *b"CW", *b"CX", *b"CY", *b"CZ", *b"DE", *b"DJ", *b"DK", *b"DM", *b"DO", *b"DZ", *b"EC", *b"EE",
    *b"EG", *b"EH", *b"ER", *b"ES", *b"ET", *b"FI", *b"FJ", *b"FK", *b"FM", *b"FO", *b"FR", *b"GA", *b"GB", *b"GD", *b"GE", *b"GF",
    *b"GG", *b"GH", *b"GI", *b"GL", *b"GM", *b"GN", *b"GP", *b"GQ", *b"GR", *b"GS", *b"GT", *b"GU", *b"GW", *b"GY", *b"HK", *b"HM",
    *b"HN", *b"HR", *b"HT", *b"HU", *b"ID", *b"IE", *b"IL", *b"IM", *b"IN", *b"IO", *b"IQ", *b"IR", *b"IS", *b"IT", *b"JE", *b"JM",
    *b"JO", *b"JP", *b"KE", *b"KG", *b"KH", *b"KI", *b"KM", *b"KN", *b"KP", *b"KR", *b"KW", *b"KY", *b"KZ", *b"LA", *b"LB", *b"LC",
    *b"LI", *b"LK", *b"LR", *b"LS", *b"LT", *b"LU", *b"LV", *b"LY", *b"MA", *b"MC", *b"MD", *b"ME", *b"MF", *b"MG", *b"MH", *b"MK",
    *b"ML", *b"MM", *b"MN", *b"MO", *b"MP", *b"MQ", *b"MR", *b"MS", *b"MT", *b"MU", *b"MV", *b"MW", *b"MX", *b"MY", *b"MZ", *b"NA",
    *b"NC", *b"NE", *b"NF", *b"NG", *b"NI", *b"NL", *b"NO", *b"NP", *b"NR", *b"NU", *b"NZ", *b"OM", *b"PA", *b"PE", *b"PF", *b"PG",
    *b"PH", *b"PK", *b"PL", *b"PM", *b"PN", *b"PR", *b"PS", *b"PT", *b"PW", *b"PY", *b"QA", *b"RE", *b"RO", *b"RS", *b"RU", *b"RW",
    *b"SA", *b"SB", *b"SC", *b"SD", *b"SE", *b"SG", *b"SH", *b"SI", *b"SJ", *b"SK", *b"SL", *b"SM", *b"SN", *b"SO", *b"SR", *b"SS",
    *b"ST", *b"SV", *b"SX", *b"SY", *b"SZ", *b"TC", *b"TD", *b"TF", *b"TG", *b"TH", *b"TJ", *b"TK", *b"TL", *b"TM", *b"TN", *b"TO",
    *b"TR", *b"TT", *b"TV", *b"TW", *b"TZ", *b"UA", *b"UG", *b"UM", *b"US", *b"UY", *b"UZ", *b"VA", *b"VC", *b"VE", *b"VG", *b"VI",
    *b"VN", *b"VU", *b"WF", *b"WS", *b"XK", *b"YE", *b"YT", *b"ZA", *b"ZM", *b"ZW",
];

/// Domains that are no country code of ISO: the United Kingdom's, and three that stayed in use.
const OTHER_DOMAINS: [[u8; 2]; 4] = [*b"AC", *b"EU", *b"SU", *b"UK"];

/// An ISO code, upper-case. The European Commission's UK and EL are GB and GR.
pub fn country(raw: &str) -> Result<Value, Invalid> {
    let code = match letters(raw) {
        Some([b'U', b'K']) => Some(*b"GB"),
        Some([b'E', b'L']) => Some(*b"GR"),
        code => code.filter(|c| CODES.binary_search(c).is_ok()),
    };
    let code = code.ok_or_else(|| Invalid::new("must be a country code of two letters (ISO 3166-1 alpha-2)"))?;
    Ok(Value::plain(code.map(char::from).iter().collect()))
}

/// A domain, lower-case: what Google calls a region. GB is uk, EL is gr; every other ISO code is its own domain.
pub fn region(raw: &str) -> Result<Value, Invalid> {
    let code = match letters(raw) {
        Some([b'G', b'B']) => Some(*b"UK"),
        Some([b'E', b'L']) => Some(*b"GR"),
        code => code.filter(|c| CODES.binary_search(c).is_ok() || OTHER_DOMAINS.contains(c)),
    };
    let code = code.ok_or_else(|| Invalid::new("must be a country-code top-level domain of two letters"))?;
    Ok(Value::plain(code.map(|b| char::from(b).to_ascii_lowercase()).iter().collect()))
}

/// Two ASCII letters, upper-case.
fn letters(raw: &str) -> Option<[u8; 2]> {
    let typed = text::typed(raw).ok()?;
    let code: [u8; 2] = typed.as_bytes().try_into().ok()?;
    code.iter().all(u8::is_ascii_alphabetic).then(|| code.map(|b| b.to_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_whole() {
        assert!(CODES.is_sorted());
        assert_eq!(CODES.iter().collect::<std::collections::BTreeSet<_>>().len(), 250);
        assert!(CODES.as_flattened().iter().all(u8::is_ascii_uppercase));
    }

    #[test]
    fn countries_have_one_spelling() {
        for (raw, right) in [("gb", "GB"), ("UK", "GB"), (" uk ", "GB"), ("el", "GR"), ("xk", "XK"), ("ｄｅ", "DE"), ("fR", "FR")]
        {
            assert_eq!(country(raw).unwrap(), Value::plain(right.into()), "{raw}");
        }
        for raw in ["", "d", "deu", "zz", "aa", "eu", "su", "d1", "Germany", "ß", "ıt", "\0\0"] {
            assert!(country(raw).is_err(), "{raw:?}");
        }
    }

    #[test]
    fn regions_are_domains() {
        for (raw, right) in [("gb", "uk"), ("UK", "uk"), ("DE", "de"), ("el", "gr"), ("eu", "eu")] {
            assert_eq!(region(raw).unwrap().key, right, "{raw}");
        }
        for raw in ["", ".uk", "com", "zz"] {
            assert!(region(raw).is_err(), "{raw:?}");
        }
    }
}
