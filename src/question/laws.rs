//! The laws of the question, over every kind and any input.

use std::sync::LazyLock;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{Case, Kind, Raw, Value, text, wire};

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(make_kinds);

fn make_kinds() -> Vec<Kind> {
    let boxed = |kind: &Kind| Box::new(kind.clone());
    let text = Kind::Text { min: 1, max: 200 };
    let number = Kind::Decimal { min: Some((-1000).into()), max: None, places: 3 };
    let word = Kind::Enum { values: vec!["DRIVE".into(), "Walk".into()], aliases: [("1".into(), "DRIVE".into())].into() };
    vec![
        Kind::Set { of: boxed(&text), separator: Some(',') },
        Kind::List { of: boxed(&number), separator: Some('|') },
        text,
        number,
        word,
        Kind::code(Some("[A-Z0-9]+"), Case::Upper, " -", 0).unwrap(),
        Kind::code(None, Case::Keep, ".\u{301}", 0).unwrap(),
        Kind::code(None, Case::Lower, "-", 8).unwrap(),
        Kind::Country,
        Kind::Region,
        Kind::Language,
        Kind::Integer { min: None, max: None },
        Kind::LatLng { places: 5 },
        Kind::Place { min: 1, max: 100 },
        Kind::Timestamp { precision: Duration::from_mins(1) },
        Kind::Timestamp { precision: Duration::ZERO },
        Kind::Bool,
        Kind::Phone,
        Kind::Json,
        Kind::Mask,
        Kind::String { min: 1, max: 200 },
        Kind::Rest,
    ]
}

/// What was read is asked again, as text and as JSON, and is the same question.
fn is_stable(kind: &Kind, value: &Value) -> Result<(), TestCaseError> {
    let json = value.asked.json();
    let again = kind.read(Raw::Json(&json));
    prop_assert_eq!(again.as_ref(), Ok(value), "{:?} from JSON", kind);
    // An element of a list may hold the separator; a waypoint's modifiers have no text.
    if matches!(kind, Kind::Set { .. } | Kind::List { .. } | Kind::Place { .. }) {
        return Ok(());
    }
    let text = value.asked.text();
    let again = kind.read(Raw::Text(&text));
    prop_assert_eq!(again.as_ref(), Ok(value), "{:?} from text", kind);
    Ok(())
}

/// Text of the characters that have been trouble.
fn nasty() -> impl Strategy<Value = String> {
    let spaces_and_signs = "⁄/-−–,.;:+ eE_*#%x()\"[]{}¨\u{A0}\u{3000}\0\n";
    let letters = "aAzßİıſKΣς10½²①⒈٣５क旗ﾉﾞ한\u{1112}\u{1161}\u{11AB}ﬁ№ﷺ\u{1D172}\u{1D165}";
    let marks = "\u{301}\u{345}\u{308}ͺ\u{94D}\u{200C}\u{200D}";
    let invisible = "\u{200B}\u{FEFF}\u{AD}\u{202E}\u{34F}\u{3164}\u{115F}\u{FE0F}\u{E0041}";
    let alphabet: Vec<char> = [spaces_and_signs, letters, marks, invisible].concat().chars().collect();
    prop::collection::vec(prop::sample::select(alphabet), 0..24).prop_map(|chars| chars.into_iter().collect())
}

/// Text that some kind reads.
fn likely() -> impl Strategy<Value = String> {
    prop_oneof![
        nasty(),
        any::<String>(),
        "[-+]?[0-9]{0,6}[.]?[0-9]{0,9}(e-?[0-9]{1,3})?",
        "-?[0-9]{1,2}[.][0-9]{0,8} ?, ?-?1?[0-9]{1,2}[.][0-9]{0,8}",
        "(00|[+])[0-9 ()-]{6,18}( x[0-9]{1,3})?",
        "[a-zA-Z]{2,3}([-_][a-zA-Z0-9]{1,8}){0,4}",
        "2027-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-][01][0-9]:[0-5][0-9])",
        "[a-z_]{1,4}([.,*][a-z_]{1,4}){0,4}",
        "(place_id:)?[A-Za-z0-9_ ]{1,12}",
        json_value().prop_map(|json| json.to_string()),
        "([a-c]{1,2}(\\[[a-c0]?\\])?=[a-z%0-9+]{0,3}&?){0,4}",
    ]
}

fn json_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        (-200..200i32).prop_map(|n| json!(f64::from(n) / 4.0)),
        nasty().prop_map(Json::from),
    ];
    let name = prop_oneof![
        Just("lat"),
        Just("lng"),
        Just("latLng"),
        Just("location"),
        Just("heading"),
        Just("address"),
        Just("via"),
        Just("placeId")
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|m| Json::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_text_again_changes_nothing(raw in likely()) {
        for kind in &*KINDS {
            if let Ok(value) = kind.read(Raw::Text(&raw)) {
                is_stable(kind, &value)?;
            }
        }
    }

    #[test]
    fn reading_json_again_changes_nothing(raw in json_value()) {
        for kind in &*KINDS {
            if let Ok(value) = kind.read(Raw::Json(&raw)) {
                is_stable(kind, &value)?;
            }
        }
    }

    #[test]
    fn several_values_never_panic(raws in prop::collection::vec(likely(), 0..4)) {
        for kind in &*KINDS {
            let many = Raw::Many(raws.iter().map(String::as_str).collect());
            let read = kind.read(many);
            prop_assert!(raws.len() == 1 || !kind.single() || read.is_err());
            if let [lat, lng] = raws.as_slice() {
                let _ = kind.read(Raw::Pair(lat, lng));
            }
        }
    }

    #[test]
    fn n_01_a_key_is_stable_and_follows_from_what_is_asked(raw in nasty()) {
        let Ok(asked) = text::asked(&raw) else { return Ok(()) };
        let key = text::key(&asked);
        prop_assert_eq!(&text::key(&key), &key);
        prop_assert_eq!(text::asked(&asked), Ok(asked.clone()));
        let again = text::asked(&key);
        prop_assert_eq!(again.as_deref(), Ok(key.as_str()));
    }

    #[test]
    fn n_01_spelling_never_splits(words in prop::collection::vec("[a-zé0-9]{1,6}", 1..5)) {
        use unicode_normalization::UnicodeNormalization as _;
        let kind = Kind::Text { min: 1, max: 200 };
        let key = |text: &str| kind.read(Raw::Text(text)).unwrap().key;
        let plain = words.join(" ");
        let full_width = |c: char| char::from_u32(u32::from(c) + 0xFEE0).filter(|_| c.is_ascii_graphic()).unwrap_or(c);
        let wide = plain.chars().map(full_width).collect();
        let spaced = format!("\u{FEFF} {}\u{200B}\n", words.join("\u{A0} "));
        for other in [plain.to_uppercase(), plain.nfd().collect(), spaced, wide] {
            prop_assert_eq!(key(&other), key(&plain), "{}", other);
        }
    }

    #[test]
    fn n_03_encoding_comes_back(name in any::<String>(), value in any::<String>()) {
        let (mut query, mut segment) = (String::new(), String::from("/"));
        wire::encode(&name, &mut query);
        query.push('=');
        wire::encode(&value, &mut query);
        let pairs = wire::parse_query(&query).unwrap();
        prop_assert_eq!(&pairs[..], &[(name.into(), value.as_str().into())][..]);
        if wire::encode_segment(&value, &mut segment).is_ok() {
            prop_assert_eq!(wire::decode_segments(&segment).unwrap(), [value]);
        }
    }

    #[test]
    fn h_04_no_path_or_query_panics(raw in prop_oneof![any::<String>(), "[/%.0-9a-fA-F;&=+\\\\]{0,30}"]) {
        let _ = wire::parse_query(&raw);
        if let Ok(segments) = wire::decode_segments(&raw) {
            prop_assert!(segments.iter().all(|s| !s.contains(['/', '\\', '\0']) && s != "." && s != ".."));
        }
    }

    #[test]
    fn n_05_a_set_has_no_order(mut words in prop::collection::vec("[a-z]{1,4}", 1..6)) {
        let kind = Kind::Set { of: Box::new(Kind::Text { min: 1, max: 9 }), separator: Some(',') };
        let key = |words: &[String]| kind.read(Raw::Text(&words.join(","))).unwrap().key;
        let before = key(&words);
        words.reverse();
        words.push(words[0].clone());
        prop_assert_eq!(key(&words), before);
    }

    #[test]
    fn n_04_other_numbers_have_other_keys(a in -180_000..180_000i32, b in -180_000..180_000i32) {
        let kind = Kind::Decimal { min: None, max: None, places: 3 };
        let key = |n: i32| kind.read(Raw::Text(&format!("{n}e-3"))).unwrap().key;
        prop_assert_eq!(key(a) == key(b), a == b);
    }
}

#[test]
fn appendix_what_is_not_interchangeable_never_meets() {
    let kind = |name: &str| KINDS.iter().find(|k| k.name() == name).unwrap();
    let pairs = [
        ("text", "16½ Windward Road", "161/2 Windward Road"),
        ("text", "10² Main", "102 Main"),
        ("text", "007 Bond St", "7 Bond St"),
        ("text", "Peña", "Pena"),
        ("code", "00445790", "445790"),
        ("country", "GB", "UA"),
        ("language", "pt-BR", "pt-PT"),
        ("integer", "1", "-1"),
        ("decimal", "0.001", "0.002"),
        ("latlng", "-45.5,73.9", "45.5,-73.9"),
        ("place", "place_id:ChIJ", "place_id:chij"),
        ("place", "1,2", "2,1"),
        ("timestamp", "2027-01-31T09:30:00Z", "2027-01-31T09:30:00+01:00"),
        ("set", "a", "a,b"),
        ("list", "1|2", "2|1"),
        ("enum", "DRIVE", "WALK"),
        ("bool", "true", "false"),
        ("phone", "+442079460958", "+12079460958"),
        ("json", "[1,2]", "[2,1]"),
        ("mask", "routes.duration", "routes"),
        ("string", "Hi", "hi"),
        ("string", "a b", "a  b"),
        ("rest", "a=1&a=2", "a=2&a=1"),
    ];
    for (name, one, other) in pairs {
        let key = |raw| kind(name).read(Raw::Text(raw)).unwrap().key;
        assert_ne!(key(one), key(other), "{name}");
    }
}

#[test]
fn every_kind_has_its_own_name() {
    let names: std::collections::BTreeSet<_> = KINDS.iter().map(Kind::name).collect();
    assert_eq!(names.len(), 19);
    let repeated: Vec<_> = KINDS.iter().filter(|k| !k.single()).map(Kind::name).collect();
    assert_eq!(repeated, ["set", "list", "mask"]);
}
