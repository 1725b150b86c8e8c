//! Runs the binary as people and programs do, and looks at what it leaves behind.

mod approvals;
mod bad_input;
mod conversations;
mod projects;
mod questions;
mod running;
mod world;
