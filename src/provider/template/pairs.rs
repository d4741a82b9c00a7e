//! The parameters of a query or form, as they are sent.

use super::{Text, Values};
use crate::question::Asked;
use crate::question::wire::encode_pair;

/// `name=value&..`, each encoded on its own. A parameter whose field is absent is left out, the elements of a list that has no
/// separator are a parameter each, and the rest of a form goes by its own names.
pub(super) fn pairs(pairs: &[(String, Text)], values: &Values) -> String {
    let mut out = String::new();
    for (name, text) in pairs {
        match text.alone(values) {
            Some(Asked::Form(rest)) => {
                for (name, value) in rest {
                    encode_pair(name, value, &mut out);
                }
            }
            Some(Asked::List { items, separator: None }) => {
                for item in items {
                    encode_pair(name, &item.text(), &mut out);
                }
            }
            _ => {
                if let Some(value) = text.plain(values) {
                    encode_pair(name, &value, &mut out);
                }
            }
        }
    }
    out
}
