//! Works on real repositories with the git of this machine.

mod cloning;
mod landing;
mod merging;
mod paths;
mod publishing;
mod quarantine;
mod same_second;
mod secrets;
mod showing;
mod slots;
mod stepping;
mod vectors;
mod world;
