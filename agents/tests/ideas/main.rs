//! Ideas and specifications on a real store, with a scripted model and a real repository.

mod house;
mod ideation;
mod specification;
