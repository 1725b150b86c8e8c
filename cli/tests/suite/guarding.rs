//! What the program keeps from commands, models and terminals, and what it asks a person to trust.

mod canary;
mod confined;
mod marks;
mod secrets;
mod trusting;
