//! Checks values of the command line that several verbs take.

use std::path::Path;

use ropewalk_config::settings::{StoreLocation, Transport};
use ropewalk_schemas::Priority;
use ropewalk_store::Location;

/// Checks the address of a bus.
pub fn bus(text: &str) -> Result<String, String> {
    checked::<Transport>(text)
}

/// Checks the address of a store.
pub fn store(text: &str) -> Result<String, String> {
    let text = checked::<StoreLocation>(text)?;
    Location::parse(&text, Path::new(""))
        .map(|_| text)
        .map_err(|error| error.to_string())
}

/// Reads how urgent something is.
pub fn priority(text: &str) -> Result<Priority, String> {
    let number = text.parse::<u8>().map_err(|error| error.to_string())?;
    Priority::new(number).map_err(|error| error.to_string())
}

fn checked<T: TryFrom<String, Error: std::fmt::Display>>(text: &str) -> Result<String, String> {
    T::try_from(text.to_owned())
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}
