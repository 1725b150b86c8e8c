//! What the broker adds.
