//! A value before it is read, and after.

use std::borrow::Cow;

use serde_json::{Value as Json, json};

use super::rest;

/// A value as a caller gave it, decoded from the wire and not yet read.
#[derive(Clone, Debug)]
pub enum Raw<'a> {
    /// One query parameter, path segment, header or form field.
    Text(&'a str),
    /// A parameter given several times, for a set, a list or a mask.
    Many(Vec<&'a str>),
    /// Coordinates in two fields: latitude, longitude.
    Pair(&'a str, &'a str),
    /// Parameters of a form, by name and value, for the rest of it.
    Form(Vec<(&'a str, &'a str)>),
    /// A member of a JSON body.
    Json(&'a Json),
}

impl<'a> Raw<'a> {
    /// The one string this is.
    pub(crate) fn string(&self) -> Result<&'a str, Invalid> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Many(many) => match many.as_slice() {
                [one] => Ok(one),
                _ => Err(Invalid::new("must be given once")),
            },
            Self::Json(Json::String(text)) => Ok(text),
            Self::Json(_) => Err(Invalid::new("must be a string")),
            Self::Pair(..) | Self::Form(_) => Err(Invalid::new("must be one value")),
        }
    }

    /// The one string or JSON number this is, a number in its own text.
    pub(crate) fn string_or_number(&self) -> Result<Cow<'a, str>, Invalid> {
        match self {
            Self::Json(Json::Number(number)) => Ok(Cow::Owned(number.to_string())),
            Self::Json(Json::String(text)) => Ok(Cow::Borrowed(text)),
            Self::Json(_) => Err(Invalid::new("must be a string or a number")),
            _ => self.string().map(Cow::Borrowed),
        }
    }
}

/// A value as it was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// What the provider is sent.
    pub asked: Asked,
    /// What makes it the same question: equal for interchangeable values of one kind, and for no others.
    pub key: String,
}

impl Value {
    /// A value whose one rendering serves for both forms.
    pub(crate) fn plain(text: String) -> Self {
        Self { key: text.clone(), asked: Asked::Text(text) }
    }

    /// What tells one thing to be done from another: as it is sent, where spelling counts; else by what it says.
    pub(crate) fn fingerprint(&self) -> Cow<'_, str> {
        match &self.asked {
            Asked::Text(text) | Asked::Address(text) => Cow::Borrowed(text),
            // The joined text does not say where an element ends, and the key does not say how it is spelt.
            Asked::List { .. } => Cow::Owned(format!("{}:{}{}", self.key.len(), self.key, self.asked.text())),
            Asked::Json(_) | Asked::Form(_) | Asked::Typed { .. } => Cow::Borrowed(&self.key),
        }
    }

    /// As [`plain`](Self::plain), for a value that JSON does not write as a string.
    pub(crate) fn typed(text: String, json: Json) -> Self {
        Self { key: text.clone(), asked: Asked::Typed { text, json: Box::new(json) } }
    }
}

/// The form of a value that is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A string, in text and in JSON.
    Text(String),
    /// JSON as the caller gave it; its text is the JSON text.
    Json(Json),
    /// A number, flag, point or waypoint: text in text, its proper type in JSON.
    Typed {
        /// For query, path, header, form and string templates.
        text: String,
        /// For JSON templates.
        json: Box<Json>,
    },
    /// An address: itself in text, a waypoint that holds it in JSON.
    Address(String),
    /// Parameters of a form as they came: a form's text in text, pairs in JSON.
    Form(Vec<(String, String)>),
    /// A set or list: joined in text, an array in JSON. Elements of a JSON array may hold the separator, so a text template
    /// needs one that they cannot hold. Without one each element is a parameter of its own.
    List {
        /// The elements, in the order they are sent.
        items: Vec<Asked>,
        /// What joins them in text.
        separator: Option<char>,
    },
}

impl Asked {
    /// The value for query, path, header, form and string templates.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) | Self::Address(text) | Self::Typed { text, .. } => Cow::Borrowed(text),
            Self::Json(json) => Cow::Owned(json.to_string()),
            Self::Form(pairs) => Cow::Owned(rest::encoded(pairs)),
            Self::List { items, separator } => Cow::Owned(joined(items, separator.unwrap_or(','))),
        }
    }

    /// How many values it is: the elements of a list, else one.
    pub fn len(&self) -> usize {
        if let Self::List { items, .. } = self { items.len() } else { 1 }
    }

    /// Whether it is a list without elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value for JSON templates, of its proper JSON type.
    pub fn json(&self) -> Json {
        match self {
            Self::Text(text) => Json::String(text.clone()),
            Self::Address(text) => json!({ "address": text }),
            Self::Json(json) => json.clone(),
            Self::Typed { json, .. } => (**json).clone(),
            Self::Form(pairs) => json!(pairs),
            Self::List { items, .. } => Json::Array(items.iter().map(Self::json).collect()),
        }
    }
}

fn joined(items: &[Asked], separator: char) -> String {
    let mut out = String::new();
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(separator);
        }
        out.push_str(&item.text());
    }
    out
}

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Invalid {
    /// A sentence fragment for the caller, such as "must hold a letter or digit". Never holds the value itself.
    pub reason: Cow<'static, str>,
}

impl Invalid {
    /// A refusal for this reason.
    pub(crate) fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_text_in_text_and_typed_in_json() {
        let number = Asked::Typed { text: "10".into(), json: Box::new(json!(10)) };
        let list = Asked::List { items: vec![Asked::Text("a".into()), number.clone()], separator: Some('|') };
        let whole = Asked::Json(json!({"a": [1, "x"]}));
        let got: Vec<_> = [&number, &list, &whole].into_iter().map(|a| (a.text().into_owned(), a.json())).collect();
        let right = [
            ("10".to_owned(), json!(10)),
            ("a|10".to_owned(), json!(["a", 10])),
            (r#"{"a":[1,"x"]}"#.to_owned(), json!({"a": [1, "x"]})),
        ];
        assert_eq!(got, right);
    }

    #[test]
    fn a_fingerprint_tells_what_is_sent_otherwise() {
        use super::super::Kind;
        let text = Kind::Text { min: 1, max: 50 };
        let list = Kind::List { of: Box::new(text.clone()), separator: Some(',') };
        let of = |kind: &Kind, json: Json| kind.read(Raw::Json(&json)).unwrap().fingerprint().into_owned();
        assert_ne!(of(&text, json!("Hi you")), of(&text, json!("hi you")));
        assert_eq!(of(&text, json!("Hi  you ")), of(&text, json!("Hi you")));
        assert_ne!(of(&list, json!(["a,b"])), of(&list, json!(["a", "b"])));
        assert_ne!(of(&list, json!(["a", "b"])), of(&list, json!(["A", "b"])));
        let place = Kind::Place { min: 1, max: 50 };
        let at = |heading: u32| json!({ "location": { "latLng": { "latitude": 1.5, "longitude": 2.5 }, "heading": heading } });
        assert_ne!(of(&place, at(90)), of(&place, at(270)), "what has no text counts, too");
    }

    #[test]
    fn a_single_kind_takes_one_value() {
        assert_eq!(Raw::Many(vec!["a"]).string(), Ok("a"));
        assert!(Raw::Many(vec![]).string().is_err());
        assert!(Raw::Many(vec!["a", "a"]).string().is_err());
        assert!(Raw::Pair("1", "2").string_or_number().is_err());
        assert!(Raw::Json(&json!(null)).string_or_number().is_err());
    }
}
