//! `tollgate key`: a caller key in a shape that a provider's client libraries accept.

use std::fmt::Write as _;
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng as _;
use sha2::{Digest as _, Sha256};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The caller's name: lower-case letters, digits, - and _.
    #[arg(value_parser = name)]
    name: String,
    /// Whose client library will send it.
    #[arg(long = "for", value_enum)]
    shape: Option<Shape>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Shape {
    /// Begins with `AIza`, 39 characters.
    Google,
    /// 32 hexadecimal digits: an auth token.
    Twilio,
    /// `pk.` and JSON in base64.
    Mapbox,
}

fn name(text: &str) -> Result<String, String> {
    let right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(right) {
        Ok(text.to_owned())
    } else {
        Err("a name is made of lower-case letters, digits, - and _".to_owned())
    }
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let key = make(arguments.shape);
    let digest = hex(&Sha256::digest(key.as_bytes()));
    println!("{key}\n");
    println!("# Shown once. In the config stands only its SHA-256:");
    println!("[callers.keys.{}]\nsha256 = \"{digest}\"", arguments.name);
    ExitCode::SUCCESS
}

/// At least 128 bits from the operating system's generator.
fn make(shape: Option<Shape>) -> String {
    let mut random = [0u8; 32];
    rand::rng().fill_bytes(&mut random);
    let (half, _) = random.split_at(16);
    match shape {
        None => format!("tg_{}", URL_SAFE_NO_PAD.encode(random)),
        Some(Shape::Google) => {
            let text = URL_SAFE_NO_PAD.encode(random);
            format!("AIza{}", text.chars().take(35).collect::<String>())
        }
        Some(Shape::Twilio) => hex(half),
        Some(Shape::Mapbox) => {
            let account = URL_SAFE_NO_PAD.encode(format!("{{\"u\":\"tollgate\",\"a\":\"{}\"}}", hex(half)));
            format!("pk.{account}.{}", URL_SAFE_NO_PAD.encode(half))
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_shape_their_library_wants() {
        let google = make(Some(Shape::Google));
        assert!(google.starts_with("AIza") && google.len() == 39);
        let twilio = make(Some(Shape::Twilio));
        assert!(twilio.len() == 32 && twilio.chars().all(|c| c.is_ascii_hexdigit()));
        let mapbox = make(Some(Shape::Mapbox));
        let parts: Vec<&str> = mapbox.split('.').collect();
        assert!(parts[0] == "pk" && URL_SAFE_NO_PAD.decode(parts[1]).unwrap().starts_with(b"{\"u\":"));
        assert_ne!(make(None), make(None));
    }
}
