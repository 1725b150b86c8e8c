//! Builds approved specifications unattended: claims, attempts, gates, lands.

pub mod decide;
pub mod gate;
