use super::*;
use crate::question::Asked;

fn value(text: &str) -> Value {
    Value { asked: Asked::Text(text.into()), key: text.into() }
}

#[test]
fn n_03_every_value_is_encoded_on_its_own() {
    let template = Template {
        path: Text::literal("/geocode"),
        query: vec![("address".into(), Text::field(0)), ("key2".into(), Text::literal("a b"))],
        ..Template::default()
    };
    for (asked, sent) in [
        ("12 Any St #211", "12%20Any%20St%20%23211"),
        ("1st & Elm", "1st%20%26%20Elm"),
        ("C++ Road", "C%2B%2B%20Road"),
        ("A=B/C?D", "A%3DB%2FC%3FD"),
        ("50% Lane", "50%25%20Lane"),
    ] {
        let rendered = template.render(&[Some(value(asked))]).unwrap();
        assert_eq!(rendered.target, format!("/geocode?address={sent}&key2=a%20b"));
    }
}

#[test]
fn absent_fields_leave_nothing_behind() {
    let fields = ["from".to_owned(), "via".to_owned()];
    let json: Json = serde_json::from_str(r#"{"origin":{"address":"{from}"},"via":{"address":"{via}"},"mode":"DRIVE"}"#).unwrap();
    let template = JsonTemplate::parse(&json, &fields).unwrap();
    let filled = template.fill(&[Some(value("Delhi")), None]).unwrap();
    assert_eq!(filled.to_string(), r#"{"mode":"DRIVE","origin":{"address":"Delhi"}}"#);
}

#[test]
fn pointers_build_the_body_again() {
    let template = JsonTemplate::Object(std::collections::BTreeMap::new())
        .insert("/origin/address", JsonTemplate::Field(0))
        .insert("/a~1b", JsonTemplate::Constant(1.into()));
    assert_eq!(template.fill(&[Some(value("x"))]).unwrap().to_string(), r#"{"a/b":1,"origin":{"address":"x"}}"#);
}

#[test]
fn bodies_that_differ_have_fingerprints_that_differ() {
    let fingerprint = |json: &str| {
        let json = JsonTemplate::parse(&serde_json::from_str(json).unwrap(), &["a".to_owned()]).unwrap();
        Template { json: Some(json), ..Template::default() }.fingerprint()
    };
    let bodies = [
        r#"{"a":{"b":1},"c":2}"#,
        r#"{"a":{"b":1,"c":2}}"#,
        r#"{"a":[1,2]}"#,
        r#"{"a":[12]}"#,
        r#"{"a":[[1],2]}"#,
        r#"{"a":"{a}"}"#,
        r#"{"a":"{{a}}"}"#,
    ];
    let distinct: std::collections::BTreeSet<String> = bodies.into_iter().map(fingerprint).collect();
    assert_eq!(distinct.len(), bodies.len(), "{distinct:?}");
}

#[test]
fn texts_name_fields_and_braces() {
    let fields = ["a".to_owned()];
    assert_eq!(Text::parse("x{a}y{{z}}", &fields).unwrap().plain(&[Some(value("1"))]).unwrap(), "x1y{z}");
    assert!(Text::parse("{b}", &fields).is_err() && Text::parse("{a", &fields).is_err() && Text::parse("a}", &fields).is_err());
}
