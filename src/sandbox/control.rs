//! The sandbox's own paths: `/meter` and `/faults`. They need no key, so the sandbox belongs on the loopback.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::answer::Answer;
use super::asked::Asked;
use super::fault::Fault;
use super::front::{Front, refused};

/// Answers a request that is for no provider.
pub fn answer(front: &Front, asked: &Asked) -> Answer {
    match (asked.path.as_str(), &asked.method) {
        ("/meter", &Method::GET) => Answer::ok(&json!(front.meter.snapshot())),
        ("/meter", &Method::DELETE) => {
            front.meter.reset();
            done()
        }
        ("/faults", &Method::GET) => list(front, StatusCode::OK),
        ("/faults", &Method::POST) => match read(&asked.body) {
            Ok(faults) => {
                front.board.set(faults);
                list(front, StatusCode::CREATED)
            }
            Err(wrong) => refused(StatusCode::BAD_REQUEST, &wrong),
        },
        ("/faults", &Method::DELETE) => {
            front.board.clear();
            done()
        }
        ("/meter" | "/faults", _) => refused(StatusCode::METHOD_NOT_ALLOWED, "GET and DELETE are served here, POST at /faults"),
        _ => refused(StatusCode::NOT_FOUND, "no provider of the sandbox has this path; its own are /meter and /faults"),
    }
}

fn done() -> Answer {
    Answer::text(StatusCode::NO_CONTENT, "text/plain", "")
}

fn list(front: &Front, status: StatusCode) -> Answer {
    Answer::json(status, &json!({"fault": front.board.list()}))
}

/// One fault, an array of them, or what a script holds: `{"fault": [..]}`. All or none are set.
fn read(body: &[u8]) -> Result<Vec<Fault>, String> {
    let given: Value = serde_json::from_slice(body).map_err(|wrong| format!("this is not JSON ({wrong}); send a fault"))?;
    let given = match given {
        Value::Object(mut file) if file.contains_key("fault") => file.remove("fault").unwrap_or_default(),
        other => other,
    };
    let faults = if let Value::Array(faults) = given { faults } else { vec![given] };
    let numbered = faults.into_iter().zip(1_u64..);
    numbered.map(|(fault, number)| one(fault).map_err(|wrong| format!("fault {number}: {wrong}"))).collect()
}

fn one(fault: Value) -> Result<Fault, String> {
    let fault: Fault = serde_json::from_value(fault).map_err(|wrong| wrong.to_string())?;
    fault.check().map_err(|wrong| format!("{}: {}", wrong.key, wrong.what))?;
    Ok(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_alone_in_an_array_or_as_a_script() {
        for body in [r#"{"status": 503}"#, r#"[{"status": 503}]"#, r#"{"fault": [{"status": 503}]}"#] {
            assert_eq!(read(body.as_bytes()).unwrap().len(), 1, "{body}");
        }
        assert_eq!(
            read(br#"[{"hang": true}, {"status": 99}]"#).unwrap_err(),
            "fault 2: status: no status a call can end with; write 200 to 599"
        );
        assert!(read(b"{").unwrap_err().starts_with("this is not JSON"));
    }
}
