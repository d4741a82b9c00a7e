//! How the receiver of an alert knows that it is ours, and when it was sent.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// `t=SECONDS,v1=HEX`: HMAC-SHA256 of `SECONDS.BODY`. None, if there can be none by such a secret.
pub(super) fn signature(secret: &str, seconds: u64, body: &str) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(format!("{seconds}.{body}").as_bytes());
    let mut text = format!("t={seconds},v1=");
    for byte in mac.finalize().into_bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_openssl_makes_of_it() {
        // printf '1796040000.{"id":"x"}' | openssl dgst -sha256 -hmac topsecret
        let expected = "t=1796040000,v1=aa66d2e251f93375ca08f911dd154d52988a0d51599d3c512ed1f42730cca90e";
        assert_eq!(signature("topsecret", 1_796_040_000, "{\"id\":\"x\"}").as_deref(), Some(expected));
    }
}
