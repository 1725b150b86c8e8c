//! Derives the JSON Schemas that models read from the types that take what they write.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Returns the JSON Schema of `T`, with everything in its place, because small models follow no references.
pub fn schema_of<T: JsonSchema>() -> Value {
    schema_with::<T>(inline())
}

/// Returns [`schema_of`] without what says nothing to a model, as for the arguments of a tool. A field that need not be
/// given is left out, and is never null.
pub fn plain_schema_of<T: JsonSchema>() -> Value {
    schema_with::<T>(inline().with_transform(RecursiveTransform(plain)))
}

fn inline() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    })
}

fn schema_with<T: JsonSchema>(settings: SchemaSettings) -> Value {
    settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

fn plain(schema: &mut Schema) {
    for noise in ["title", "default", "format"] {
        schema.remove(noise);
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|of| of != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    // The lines of a comment end where the code is wide enough.
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}
