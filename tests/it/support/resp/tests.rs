//! Each kind of both protocols, and streams split wherever a socket may split them.

use super::*;

/// One of each, and what it means.
fn all() -> Vec<(&'static [u8], Reply)> {
    let text = |text: &str| Reply::from(text);
    let nested = Reply::List(vec![
        Reply::Map(vec![(text("k"), Reply::List(vec![Reply::Int(-1), Reply::Null])), (Reply::Int(2), text(""))]),
        Reply::List(vec![]),
        Reply::Push(vec![text("invalidate"), Reply::List(vec![text("key")])]),
    ]);
    vec![
        (b"+OK\r\n", text("OK")),
        (b"+\r\n", text("")),
        (b"-NOSCRIPT No matching\r\n", Reply::Error("NOSCRIPT No matching".into())),
        (b":-42\r\n", Reply::Int(-42)),
        (b"$4\r\na\r\nb\r\n", text("a\r\nb")),
        (b"$0\r\n\r\n", text("")),
        (b"$-1\r\n", Reply::Null),
        (b"*-1\r\n", Reply::Null),
        (b"_\r\n", Reply::Null),
        (b"*0\r\n", Reply::List(vec![])),
        (b"%0\r\n", Reply::Map(vec![])),
        (b"#t\r\n", Reply::Bool(true)),
        (b",1.5\r\n", Reply::Double(1.5)),
        (b",inf\r\n", Reply::Double(f64::INFINITY)),
        (b"(3492890328409238509324850943850943825024385\r\n", big()),
        (b"!9\r\nERR no\r\n!\r\n", Reply::Error("ERR no\r\n!".into())),
        (b"=8\r\ntxt:So\r\n\r\n", Reply::Verbatim("txt".into(), "So\r\n".into())),
        (b"~2\r\n+a\r\n:1\r\n", Reply::List(vec![text("a"), Reply::Int(1)])),
        (b">2\r\n+message\r\n$1\r\nx\r\n", Reply::Push(vec![text("message"), text("x")])),
        (b"|1\r\n+ttl\r\n*1\r\n:3\r\n$1\r\nx\r\n", text("x")),
        (b"*2\r\n|1\r\n+ttl\r\n:3\r\n:7\r\n:8\r\n", Reply::List(vec![Reply::Int(7), Reply::Int(8)])),
        (b"*3\r\n%2\r\n$1\r\nk\r\n*2\r\n:-1\r\n$-1\r\n:2\r\n$0\r\n\r\n*0\r\n>2\r\n+invalidate\r\n*1\r\n$3\r\nkey\r\n", nested),
    ]
}

fn big() -> Reply {
    Reply::BigNumber("3492890328409238509324850943850943825024385".into())
}

fn drain(frames: &mut Frames) -> Vec<Bytes> {
    std::iter::from_fn(|| frames.cut().unwrap()).collect()
}

#[test]
fn each_kind_is_one_frame_and_means_what_it_says() {
    for (bytes, meaning) in all() {
        let mut frames = Frames::default();
        frames.push(bytes);
        assert_eq!(drain(&mut frames), [bytes], "{}", String::from_utf8_lossy(bytes));
        assert_eq!(parse(bytes), Ok(meaning));
    }
}

#[test]
fn a_stream_split_at_any_two_bytes_has_the_same_frames() {
    let stream: Vec<u8> = all().iter().flat_map(|(bytes, _)| bytes.to_vec()).collect();
    let whole: Vec<&[u8]> = all().iter().map(|(bytes, _)| *bytes).collect();
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for part in [&stream[..first], &stream[first..second], &stream[second..]] {
                frames.push(part);
                seen.extend(drain(&mut frames));
            }
            assert_eq!(seen, whole, "split at {first} and {second}");
        }
    }
}

#[test]
fn byte_by_byte_a_frame_comes_with_its_last_byte() {
    for (bytes, _) in all() {
        let mut frames = Frames::default();
        for (at, byte) in bytes.iter().enumerate() {
            frames.push(&[*byte]);
            assert_eq!(frames.cut().unwrap().is_some(), at + 1 == bytes.len(), "{}", String::from_utf8_lossy(bytes));
        }
    }
}

#[test]
fn big_strings_and_long_lists_are_cheap() {
    let long = "x".repeat(3_000_000);
    let mut bytes = format!("${}\r\n{long}\r\n*100000\r\n", long.len()).into_bytes();
    bytes.extend(b":1\r\n".repeat(100_000));
    let mut frames = Frames::default();
    let mut seen = Vec::new();
    for part in bytes.chunks(1_000) {
        frames.push(part);
        seen.extend(drain(&mut frames));
    }
    assert_eq!(parse(&seen[0]).unwrap().text().len(), long.len());
    assert_eq!((seen.len(), parse(&seen[1]).unwrap().list().len()), (2, 100_000));
}

#[test]
fn what_is_no_resp_is_told() {
    for bytes in [&b"HTTP/1.1 200 OK\r\n"[..], b"$x\r\n", b"*-2\r\n", b"$?\r\n", b"\r\n", b":\xff\r\n"] {
        let mut frames = Frames::default();
        frames.push(bytes);
        assert!(frames.cut().is_err(), "{bytes:?}");
    }
    for short in [&b"*2\r\n:1\r\n"[..], b"$3\r\nab", b":1\r\n:2\r\n"] {
        assert!(parse(short).is_err(), "{short:?}");
    }
}

#[test]
fn commands_are_lists_of_texts() {
    assert_eq!(command(&["GET", "é"]), "*2\r\n$3\r\nGET\r\n$2\r\né\r\n".as_bytes());
}
