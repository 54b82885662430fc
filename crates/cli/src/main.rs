//! The `autoact` command.
fn main() {}
