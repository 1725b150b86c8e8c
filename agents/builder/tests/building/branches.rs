//! The whole of a build: its check, its branch, its landing.

mod landing;
mod merging;
mod publishing;
mod whole;
