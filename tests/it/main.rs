//! Black-box tests: one binary, one file a subject.
fn main() {}
