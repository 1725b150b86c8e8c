//! Builds approved plans with a scripted model, a real store and real git.

mod house;
mod lifecycle;
