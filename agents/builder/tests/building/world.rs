//! What every test of a build stands on: a project, scripts, a model that listens, a gate that is met.

mod approving;
pub(crate) mod listener;
pub(crate) mod meeting;
pub(crate) mod patience;
mod people;
pub(crate) mod project;
pub(crate) mod script;
