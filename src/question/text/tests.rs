use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use super::chars::{ascii_digit, is_fraction};
use super::*;

fn value(raw: &str) -> Result<Value, Invalid> {
    read(raw, 1, 200)
}

fn one_key(group: &[&str]) -> String {
    let keys: BTreeSet<_> = group.iter().map(|raw| value(raw).unwrap().key).collect();
    assert_eq!(keys.len(), 1, "{group:?}: {keys:?}");
    keys.into_iter().next().unwrap()
}

/// Each line one entry; no line meets another.
fn apart(groups: &[&[&str]]) {
    let keys: BTreeSet<_> = groups.iter().map(|group| one_key(group)).collect();
    assert_eq!(keys.len(), groups.len(), "{keys:?}");
}

#[test]
fn n_01_one_town_in_many_bytes_is_one_entry() {
    apart(&[
        &[
            "Chambéry, France",
            "Chambe\u{301}ry, France",
            "  CHAMBÉRY,\u{A0}\u{A0}France",
            "\u{FEFF}Cham\u{200B}béry, France",
            "\u{202A}Chambéry\u{202C}, France",
            "Cham\u{AD}béry,\u{3000}France",
            "Chambéry,France",
        ],
        &["Chambery, France"],
        &["１丁目１０－４", "1丁目10-4", "1丁目10\u{2212}4", "１丁目１０‐４"],
        &["1丁目104"],
        &["1丁目10ー4"],
    ]);
}

#[test]
fn n_01_joiners_stay_inside_words() {
    apart(&[
        &["می\u{200C}خواهم", "\u{200C}می\u{200C}\u{200C}خواهم \u{200D}", "می\u{200C}خواهم"],
        &["میخواهم"],
        &["क\u{94D}\u{200D}ष"],
        &["क\u{94D}ष"],
    ]);
    assert_eq!(value("می\u{200C}خواهم").unwrap().asked.text(), "می\u{200C}خواهم");
}

#[test]
fn n_02_one_half_is_a_word_of_its_own() {
    apart(&[
        &[
            "537½ west 26th street",
            "537 1/2 west 26th street",
            "537 ½ West 26th Street",
            "５３７½ west 26th street",
            "537 1⁄2 west 26th street",
        ],
        &["5371/2 west 26th street", "5371⁄2 west 26th street"],
        &["537 west 26th street"],
        &["½5 Lane", "1/2 5 Lane"],
        &["1/25 Lane"],
        &["½½ Lane", "1/2 1/2 Lane"],
        &["⅟2 x", "1/2 x", "½ x"],
    ]);
    assert_eq!(value("537½ west 26th street").unwrap().asked.text(), "537½ west 26th street");
}

#[test]
fn n_02_raised_lowered_and_circled_digits_are_not_digits() {
    apart(&[
        &["10² Main"],
        &["102 Main"],
        &["10₂ Main"],
        &["10② Main"],
        &["10⑵ Main"],
        &["10⒉ Main"],
        &["10(2) Main"],
        &["102. Main"],
        &["10❷ Main"],
        &["10² ½ Main", "10²½ Main"],
    ]);
    apart(&[&["5㈠"], &["5一"], &["5(一)"], &["5㊀"]]);
    apart(&[&["Henri Ⅳ", "Henri IV", "henri ⅳ"], &["Henri VI"]]);
}

#[test]
fn n_03_live_characters_come_through_unchanged() {
    for raw in ["12 Any St #211", "1st & Elm", "Mont d'Or", "C++ Road", "50% Lane", "A=B/C?D"] {
        let read = value(raw).unwrap();
        assert_eq!((read.asked.text().as_ref(), read.key), (raw, raw.to_lowercase()), "{raw}");
    }
    assert_eq!(one_key(&["12 Any St ＃211", "12 any st #211"]), "12 any st #211");
    assert_eq!(one_key(&["1st ＆ Elm", "1st & Elm"]), "1st & elm");
    assert_eq!(one_key(&["Mont d’Or", "Mont d'Or"]), "mont d'or");
    assert_eq!(value("1st ＆ Elm").unwrap().asked.text(), "1st ＆ Elm");
}

#[test]
fn appendix_every_letter_is_one_entry() {
    apart(&[
        &["16½ Windward Road", "16 1/2 Windward Road"],
        &["161/2 Windward Road"],
        &["Kloosterweg 22, 6412 CN", "kloosterweg  22,6412 cn", "Kloosterweg 22 , 6412 CN"],
        &["Kloosterweg 226412 CN"],
        &["Straße 5", "STRASSE 5", "STRAẞE 5"],
        &["İstanbul", "i̇stanbul"],
        &["istanbul", "ISTANBUL"],
        &["ıstanbul"],
        &["ﬁsh Lane", "fish lane"],
        &["\u{212A} Road", "K road"],
        &["旗ﾉ台", "旗ノ台"],
        &["№ 5", "No 5"],
        &["007 Bond St"],
        &["7 Bond St"],
        &["ΟΔΟΣ", "οδοσ", "οδος"],
    ]);
    assert_eq!(one_key(&["٧ Bond St", "۷ Bond St", "7\nBond\tSt", "7\u{2028}Bond\u{85}St"]), "7 bond st");
}

#[test]
fn other_letters_are_other_places() {
    apart(&[
        &["Peña"],
        &["Pena"],
        &["Paris"],
        &["Pаris"],
        &["ş"],
        &["ș"],
        &["10-4"],
        &["104"],
        &["10 4"],
        &["10/4"],
        &["10.4"],
        &["10,4"],
    ]);
    apart(&[&["10-4", "10–4", "10\u{2011}4", "10‒4"], &["10—4"]]);
}

#[test]
fn appendix_what_cannot_be_asked_is_refused() {
    let refused = [
        "",
        " ",
        "\u{200B}",
        "\u{A0}\u{3000}",
        "-",
        ",.;",
        "\u{3164}",
        "\u{301}",
        "x\0y",
        "x\u{1B}y",
        "x\u{7F}",
        "x\u{1C}y",
        "é\u{9F}",
        "x\u{E0041}",
        "x\u{FFFF}",
        "x\u{FDD0}",
        "é\0",
    ];
    for raw in refused {
        assert!(value(raw).is_err(), "{raw:?}");
    }
    for raw in ["a\nb", "7", "七", "½", "²"] {
        assert!(value(raw).is_ok(), "{raw:?}");
    }
}

#[test]
fn appendix_length_is_bounded_before_and_after_the_fold() {
    let table = [
        ("x".repeat(200), true),
        ("x".repeat(201), false),
        ("x".repeat(10_000), false),
        ("é".repeat(200), true),
        ("é".repeat(201), false),
    ];
    for (raw, fits) in table {
        assert_eq!(value(&raw).is_ok(), fits, "{}", raw.len());
    }
    assert!(value("e\u{301}".repeat(200).as_str()).is_ok(), "counted when composed");
    assert!(value(&format!("e{}", "\u{301}".repeat(2000))).is_err());
    assert!(read("\u{FDFA}", 1, 18).is_ok());
    assert!(read("\u{FDFA}", 1, 17).is_err(), "18 characters in the key");
    assert!(read(" a ", 2, 5).is_err());
    assert!(read(&format!("{}a", " ".repeat(20)), 1, 5).is_ok());
    assert!(read("a", 1, usize::MAX).is_ok());
}

#[test]
fn asked_text_keeps_case_and_spelling() {
    let table = [
        ("  Straße   5 ", "Straße 5"),
        ("a\r\n\tb", "a b"),
        ("Ａ½", "Ａ½"),
        ("e\u{301}", "é"),
        ("x, y", "x, y"),
        ("K \u{212A}", "K K"),
    ];
    for (raw, right) in table {
        assert_eq!(asked(raw).unwrap(), right, "{raw}");
    }
    assert!(matches!(asked("12 Main St").unwrap(), Cow::Borrowed(_)));
}

#[test]
fn typed_text_is_narrow_and_keeps_case() {
    let table = [(" Ａb１ ", "Ab1"), ("\u{2212}５", "-5"), ("٤,٥", "4,5"), ("10²", "10²"), ("\u{FEFF}x", "x")];
    for (raw, right) in table {
        assert_eq!(typed(raw).unwrap(), right, "{raw}");
    }
    assert!(typed(&"x".repeat(TYPED_MAX + 1)).is_err());
}

/// Every character but the plain letters: those without decomposition, case or numeric value.
fn characters() -> impl Iterator<Item = char> {
    let assigned = ('\0'..'\u{20000}').chain('\u{2F800}'..'\u{2FA20}').chain('\u{E0000}'..'\u{E0200}');
    let plain = |c: char| {
        c.is_alphabetic() && !c.is_numeric() && c.to_lowercase().eq([c]) && c.to_uppercase().eq([c]) && c.nfkd().eq([c])
    };
    assigned.filter(move |c| !plain(*c) && !matches!(c, '\u{AC02}'..='\u{D7A3}' | '\u{E002}'..='\u{F8FF}'))
}

#[test]
fn no_character_changes_when_read_again() {
    for c in characters() {
        for raw in [format!("{c}"), format!("a1{c}\u{301}"), format!("5{c}½{c}5"), format!("k\u{200D}{c}\u{200D}\u{345}")] {
            let Ok(asked) = asked(&raw) else { continue };
            assert_eq!(super::asked(&asked).unwrap(), asked, "{raw:?}");
            let key = key(&asked);
            assert_eq!(super::asked(&key).unwrap(), key, "{raw:?}");
            assert_eq!(super::key(&key), key, "{raw:?}");
            let narrow = fold::narrow(&asked);
            assert_eq!(fold::narrow(&narrow), narrow, "{raw:?}");
        }
    }
}

#[test]
fn no_number_becomes_another() {
    for c in characters().filter(|c| !c.is_ascii()) {
        let made: String = c.nfkc().collect();
        assert_eq!(is_fraction(c), made.contains('\u{2044}') && c != '\u{2044}', "{c:?}");
        let raw = format!("5{c}");
        let Ok(asked) = asked(&raw) else { continue };
        let digits = key(&asked).bytes().filter(u8::is_ascii_digit).count();
        let expected =
            if is_fraction(c) { made.bytes().filter(u8::is_ascii_digit).count() } else { ascii_digit(c).iter().count() };
        assert_eq!(digits, expected + 1, "{c:?}");
    }
}

#[test]
fn the_digit_table_agrees_with_the_compiler() {
    let digits: Vec<char> = characters().filter(|c| ascii_digit(*c).is_some()).collect();
    assert_eq!(digits.len(), 770);
    assert!(digits.iter().all(|c| c.is_numeric()));
}

proptest::proptest! {
    #[test]
    fn the_fast_path_agrees_with_the_slow_one(raw in "[ -~\\t\\n]{0,40}") {
        let asked = asked(&raw).unwrap();
        proptest::prop_assert_eq!(&asked_unicode(&raw).unwrap(), &asked);
        proptest::prop_assert_eq!(key(&asked), fold::key_unicode(&asked));
    }
}
