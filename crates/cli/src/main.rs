//! The `pagefold` command.

fn main() {}
