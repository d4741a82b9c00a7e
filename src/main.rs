//! Arguments to command.
fn main() {}
