use serde_json::json;

use super::*;

fn number(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn a_whole_number_has_one_spelling() {
    for raw in ["10", "+10", "010", "10.0", "1e1", " 10 ", "１０", "١٠"] {
        assert_eq!(integer(raw, None, None), Ok(Value::typed("10".into(), json!(10))), "{raw}");
    }
    assert_eq!(integer("-0", None, None).unwrap().key, "0");
    assert_eq!(integer("\u{2212}3", None, None).unwrap().key, "-3");
    assert_eq!(integer("9223372036854775807", None, None).unwrap().asked.json(), json!(i64::MAX));
    for raw in ["", "x", "1.5", "1e400", "9223372036854775808", "10²", "½", "1 0", "0x10", "1,000"] {
        assert!(integer(raw, None, None).is_err(), "{raw}");
    }
}

#[test]
fn bounds_are_inclusive() {
    for (raw, fits) in [("0", false), ("1", true), ("9", true), ("10", false), ("-1", false)] {
        assert_eq!(integer(raw, Some(1), Some(9)).is_ok(), fits, "{raw}");
    }
    let (min, max) = (number("-0.5"), number("0.5"));
    for (raw, fits) in [
        ("-0.5", true),
        ("0.5", true),
        ("0.500000001", false),
        ("-0.50000000000000000001", false),
        ("1e400", false),
        ("1e-400", true),
    ] {
        assert_eq!(decimal(raw, Some(&min), Some(&max), 2).is_ok(), fits, "{raw}");
    }
    assert!(decimal("0.001", Some(&number("0.001")), None, 2).is_err(), "out of bounds once rounded");
}

#[test]
fn f_02_a_huge_number_is_refused_and_a_tiny_one_is_zero() {
    for raw in ["1e400", "-1e400", "1e99999999999999999999", &"9".repeat(300)] {
        assert!(decimal(raw, None, None, 5).is_err(), "{raw}");
    }
    assert_eq!(decimal("1e-99999999999999999999", None, None, 5).unwrap().key, "0");
    assert_eq!(decimal("1e30", None, None, 5).unwrap().key.len(), 31);
}

#[test]
fn a_decimal_is_a_number_in_json() {
    for (raw, text, json) in
        [("1.50", "1.5", json!(1.5)), ("2.0", "2", json!(2)), ("-0.00", "0", json!(0)), ("0.1", "0.1", json!(0.1))]
    {
        assert_eq!(decimal(raw, None, None, 6), Ok(Value::typed(text.into(), json)), "{raw}");
    }
}

#[test]
fn a_flag_has_two_values() {
    let read = |raw: &str| boolean(&Raw::Text(raw)).map(|v| v.key).ok();
    for raw in ["true", "TRUE", "1", "yes", " True ", "１"] {
        assert_eq!(read(raw).as_deref(), Some("true"), "{raw}");
    }
    for raw in ["false", "False", "0", "no"] {
        assert_eq!(read(raw).as_deref(), Some("false"), "{raw}");
    }
    for raw in ["", "on", "t", "2", "01", "truefalse"] {
        assert_eq!(read(raw), None, "{raw}");
    }
    for (json, right) in [
        (json!(true), Some("true")),
        (json!(0), Some("false")),
        (json!("yes"), Some("true")),
        (json!(null), None),
        (json!(2), None),
    ] {
        assert_eq!(boolean(&Raw::Json(&json)).map(|v| v.key).ok().as_deref(), right, "{json}");
    }
    assert_eq!(boolean(&Raw::Text("1")).unwrap().asked.json(), json!(true));
}

#[test]
fn a_word_and_its_number_are_one() {
    let values = ["DRIVE", "WALK", "walk"].map(String::from);
    let aliases = [("1", "DRIVE"), ("Car", "DRIVE")].map(|(a, v)| (a.into(), v.into())).into();
    let read = |raw: &str| choice(raw, &values, &aliases).map(|v| v.key).ok();
    for (raw, right) in [
        ("DRIVE", "DRIVE"),
        ("drive", "DRIVE"),
        ("1", "DRIVE"),
        ("1.0", "DRIVE"),
        ("car", "DRIVE"),
        ("ＤＲＩＶＥ", "DRIVE"),
        ("walk", "walk"),
        ("Walk", "WALK"),
    ] {
        assert_eq!(read(raw).as_deref(), Some(right), "{raw}");
    }
    for raw in ["", "2", "DRIVER", "DRİVE", "dr\u{131}ve"] {
        assert_eq!(read(raw), None, "{raw}");
    }
    assert_eq!(choice("x", &values, &aliases).unwrap_err().reason, "must be one of DRIVE, WALK, walk");
    assert_eq!(offer(&["a".to_owned()]), "a");
    assert!(offer(&vec!["a".to_owned(); 99]).ends_with(", .."));
}
