//! Acceptance scenarios on the program itself: they check effects (files, commits, rows, events), never log text.

mod broker;
mod crash;
mod emulator;
mod picture;
mod rehearsal;
mod whole_pipeline;
