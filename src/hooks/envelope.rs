//! What Pub/Sub wraps a message in when it pushes it.
//!
//! ```text
//! {"subscription": "projects/P/subscriptions/S",
//!  "message": {"data": "<base64>", "attributes": {"budgetId": "..", "schemaVersion": "1.0", ..},
//!              "messageId": "1", "message_id": "1", "publishTime": "..Z", "publish_time": "..Z"}}
//! ```
//!
//! Seen from the emulator, and as documented by Google ("Push subscriptions"). Both spellings of id and time come side by side;
//! either will do, and a message without them is one all the same: they are only told.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use super::words::clean;

/// Why a message is not acted on. It is acknowledged all the same: sent again, it would say the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Not what it should be.
    Malformed(String),
    /// Nothing of ours: no budget's, or of a schema nobody knows here.
    Foreign(String),
}

impl Unread {
    pub(super) fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed(why.into())
    }
}

/// A message, unwrapped.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) data: Vec<u8>,
    pub(super) attributes: HashMap<String, String>,
    /// Its id, for the log.
    pub(super) id: String,
    /// When it was published, as it says.
    pub(super) published: String,
}

#[derive(Deserialize)]
struct Push {
    message: Wrapped,
}

#[derive(Deserialize)]
struct Wrapped {
    data: Option<String>,
    attributes: Option<HashMap<String, String>>,
    #[serde(rename = "messageId")]
    id: Option<String>,
    #[serde(rename = "message_id")]
    id_too: Option<String>,
    #[serde(rename = "publishTime")]
    published: Option<String>,
    #[serde(rename = "publish_time")]
    published_too: Option<String>,
}

/// Unwraps a push.
pub(super) fn open(body: &[u8]) -> Result<Message, Unread> {
    let Push { message } = serde_json::from_slice(body).map_err(|error| Unread::malformed(format!("the envelope: {error}")))?;
    let data = BASE64.decode(message.data.unwrap_or_default()).map_err(|error| Unread::malformed(format!("data: {error}")))?;
    let told = |one: Option<String>, other: Option<String>| clean(&one.or(other).unwrap_or_default(), 64);
    Ok(Message {
        data,
        attributes: message.attributes.unwrap_or_default(),
        id: told(message.id, message.id_too),
        published: told(message.published, message.published_too),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_spelling_will_do() {
        for (id, time) in [("messageId", "publishTime"), ("message_id", "publish_time")] {
            let message = open(format!(r#"{{"message":{{"data":"eA==","{id}":"7","{time}":"T"}},"x":1}}"#).as_bytes()).unwrap();
            assert_eq!((message.data, message.id, message.published), (b"x".to_vec(), "7".into(), "T".into()));
        }
        let both = br#"{"message":{"messageId":"1","message_id":"1","publishTime":"a","publish_time":"a"}}"#;
        assert_eq!(open(both).unwrap().id, "1");
    }

    #[test]
    fn what_is_no_push_is_malformed() {
        for wrong in
            [&b""[..], b"{", b"[]", b"{}", br#"{"message":null}"#, br#"{"message":{"data":"%%"}}"#, br#"{"message":{"data":7}}"#]
        {
            assert!(matches!(open(wrong), Err(Unread::Malformed(_))), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
