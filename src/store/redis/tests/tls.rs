//! An encrypted connection, to whom a named authority vouches for and to nobody else.

use std::path::Path;
use std::process::Command;

use super::*;

/// Runs openssl in a directory.
fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output();
    let output = output.expect("openssl is needed: apt-get install openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// An authority, and a certificate it has signed for 127.0.0.1.
fn certificates(directory: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(directory, &format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority"));
    openssl(directory, &format!("req {key} -keyout server.key -out server.csr -subj /CN=localhost"));
    std::fs::write(directory.join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
    openssl(
        directory,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_is_checked_against_the_named_authority() {
    let directory = tempfile::tempdir().unwrap();
    certificates(directory.path());
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (certificate, key, ca) = (path("server.pem"), path("server.key"), path("ca.pem"));
    let (port_text, files) = (port.to_string(), ["--tls-cert-file", &certificate, "--tls-key-file", &key]);
    let settings = ["--save", "", "--tls-port", &port_text, "--tls-auth-clients", "no", "--tls-ca-cert-file", &ca];
    let server = Server::with(&[&settings[..], &files].concat());
    let options = |ca| Options { url: format!("rediss://127.0.0.1:{port}"), ca, ..options(&server) };

    let (store, mut events) = RedisStore::open(options(Some(std::fs::read(&ca).unwrap())), Clock::system()).unwrap();
    assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
    super::super::super::conformance::shared::listening(&mut events).await;
    assert_eq!(store.generation("geo").await, Ok(0));

    let (stranger, _events) = RedisStore::open(options(None), Clock::system()).unwrap();
    while stranger.health().error.is_none() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(!stranger.health().was_well);
    let error = stranger.health().error.unwrap();
    assert!(error.contains("invalid peer certificate"), "{error}");
    let no_pem = RedisStore::open(options(Some(b"no certificate".to_vec())), Clock::system());
    assert!(no_pem.err().expect("refused").to_string().contains("PEM"));
}
