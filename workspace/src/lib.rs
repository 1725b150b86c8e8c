//! Owns git and child processes.
pub mod command;
pub mod environment;
pub use command::{
    CommandError, CommandOutput, CommandRunner, CommandSpec, CommandStatus, Program,
};
pub use environment::Environment;
