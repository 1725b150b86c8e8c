//! The way to the model: here there is none, it is in the process.

use std::sync::Arc;

use ropewalk_engine::llm::Model;
use ropewalk_world::provider::WireFormat;

/// Returns `model` itself, in no format.
pub(crate) fn to(model: Arc<dyn Model>, _: WireFormat) -> Arc<dyn Model> {
    model
}
