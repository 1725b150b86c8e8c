//! Holds the models of the house as they are now: whoever begins a turn takes them once and keeps them to its end.

use std::sync::{Arc, PoisonError, RwLock};

use crate::job::Models;

/// The models as they are now. Cheap to clone, and shared by its clones.
#[derive(Debug, Clone)]
pub(crate) struct CurrentModels(Arc<RwLock<Arc<Models>>>);

impl CurrentModels {
    /// Begins with `models`.
    pub(crate) fn new(models: Models) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(models))))
    }

    /// Returns them.
    pub(crate) fn now(&self) -> Arc<Models> {
        let models = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&models)
    }

    /// Puts others in their place.
    pub(crate) fn replace(&self, models: Models) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(models);
    }
}
