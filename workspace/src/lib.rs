//! Owns git and child processes: the local clone, checkout slots, preserve refs, landing, publishing, and the
//! runner that every command of the project goes through.
//!
//! What it is not: it decides nothing (what to land, which files are in scope, when to retry) and remembers
//! nothing outside git and the slot directories; SQL owns the head of a build, and this crate follows it.
//!
//! To add a git verb: write a method in `clone/` (reading or writing objects and refs) or in `checkout.rs` (working
//! trees), call git through [`Git`] so that no setting of the user or of the machine is inherited, and read
//! only `-z` or plumbing output. A verb that could lose work stores it under a preserve ref first.

mod checkout;
mod file_lock;
mod process;
mod retirement;
mod right_of_way;
mod stale;

pub mod clone;
pub mod command;
pub mod commit;
pub mod environment;
pub mod git;
pub mod landing;
pub mod merge;
pub mod path;
pub mod preserve;
pub mod publish;
pub mod sandbox;
pub mod slot;
pub mod source;

pub use checkout::remove_tree;
pub use clone::{History, LocalClone, LocalCloneOptions};
pub use command::{CommandOutput, CommandRunner, CommandSpec, Program};
pub use commit::{ChangeKind, ChangedFile, ChangedLines, CommitMessage, Identity, LoggedCommit};
pub use environment::Environment;
pub use file_lock::FileLock;
pub use git::{Git, GitError};
pub use landing::{ConflictFile, Notes, Rebase, RebasedCandidate, Side};
pub use merge::{Merge, PushError};
pub use path::{PathError, SlotFiles};
pub use preserve::{PreserveKey, PreserveRef};
pub use process::orphans::end_orphans;
pub use process::shell::shell_word;
pub use process::{CommandError, CommandStatus, OutputListener};
pub use publish::{Publication, PublishError};
pub use retirement::Retirement;
pub use sandbox::{Hold, Level, Limits, Reach, Sandbox, SandboxError, SandboxOptions};
pub use slot::{CleanCheckout, CleanPool, RecoveredWork, Slot, SlotError, SlotPool, Snapshot};
pub use source::{UserHead, UserRepository};
