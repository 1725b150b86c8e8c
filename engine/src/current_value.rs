//! Holds what may be changed while the program runs, as it is now: whoever begins a turn takes it once and keeps it to the
//! end of that turn.

use std::sync::{Arc, PoisonError, RwLock};

/// A value as it is now. Cheap to clone, and shared by its clones.
#[derive(Debug)]
pub struct CurrentValue<Value>(Arc<RwLock<Arc<Value>>>);

impl<Value> CurrentValue<Value> {
    /// Begins with `value`.
    pub fn new(value: impl Into<Arc<Value>>) -> Self {
        Self(Arc::new(RwLock::new(value.into())))
    }

    /// Returns it.
    pub fn now(&self) -> Arc<Value> {
        let value = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&value)
    }

    /// Puts another in its place, for all that share it.
    pub fn replace(&self, value: impl Into<Arc<Value>>) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = value.into();
    }
}

impl<Value: Default> Default for CurrentValue<Value> {
    fn default() -> Self {
        Self::new(Value::default())
    }
}

impl<Value> Clone for CurrentValue<Value> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
