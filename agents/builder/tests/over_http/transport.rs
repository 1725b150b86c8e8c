//! The way to the model: HTTP.

use std::sync::Arc;

use ropewalk_engine::llm::Model;
use ropewalk_world::provider::{WireFormat, over_http};

/// Returns a provider that asks `model` in a format.
pub(crate) fn to(model: Arc<dyn Model>, format: WireFormat) -> Arc<dyn Model> {
    over_http(model, format).unwrap()
}
