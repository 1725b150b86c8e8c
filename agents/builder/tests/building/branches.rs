//! The whole of a build: its check, its branch, its landing.

mod ground;
mod landing;
mod merging;
mod publishing;
mod resolving;
mod whole;
mod work;
