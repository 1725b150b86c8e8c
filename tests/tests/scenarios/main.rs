//! Acceptance scenarios on the program itself: they check effects (files, commits, rows, events), never log text.

mod broker;
mod crash;
mod emulator;
mod fallback;
mod journey;
mod live;
mod overnight;
mod pages;
mod picture;
mod planted;
mod postgres;
mod project;
mod rehearsal;
mod replay;
mod running;
mod summaries;
mod told;
mod traces;
mod whole_pipeline;
