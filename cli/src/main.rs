//! The ropewalk binary.

fn main() {}
