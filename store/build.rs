//! Rebuilds the crate when a migration is added; the macro that embeds them does not see new files.

#[expect(clippy::print_stdout, reason = "cargo reads build instructions there")]
fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
