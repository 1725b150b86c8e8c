//! Runs the binary as people and programs do, and looks at what it leaves behind.

#[cfg(test)]
mod abandoning;
#[cfg(test)]
mod alerts;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod fallbacks;
#[cfg(test)]
mod given;
#[cfg(test)]
mod guarding;
#[cfg(test)]
#[cfg(test)]
mod landing;
#[cfg(test)]
mod lessons;
#[cfg(test)]
mod noticing;
#[cfg(test)]
mod people;
#[cfg(test)]
mod projects;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod running;
#[cfg(test)]
mod surveying;
#[cfg(test)]
mod timeline;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod world;
