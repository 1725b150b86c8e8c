//! Leaves out of what two runs wrote what differs between any two, so that all the rest can be compared.

use serde_json::Value;

/// Writes a value without what depends on the machine: how long something took, who did it, how much it said. Ids, hashes
/// and times are left out of its texts, and so is which of `surfaces` somebody used.
pub fn kept(value: Value, surfaces: &[&str]) -> String {
    fn without(value: Value) -> Value {
        let depends = |name: &str| {
            name.ends_with("_seconds")
                || name.ends_with("_ms")
                || ["loop_name", "tokens", "spent"].contains(&name)
        };
        match value {
            Value::Object(fields) => fields
                .into_iter()
                .filter(|(name, _)| !depends(name))
                .map(|(name, value)| (name, without(value)))
                .collect(),
            Value::Array(items) => items.into_iter().map(without).collect(),
            other => other,
        }
    }
    plain(&without(value).to_string(), surfaces)
}

/// Leaves out of a text its ids, hashes and times, what stands between words, which loop did it, and the one of `surfaces`
/// that somebody used.
pub fn plain(written: &str, surfaces: &[&str]) -> String {
    let is_apart = |letter: char| !letter.is_alphanumeric() && !"-:.".contains(letter);
    let words = written.split(is_apart).filter(|word| !word.is_empty());
    let words = words.map(|word| {
        let has_digit = word.contains(|letter: char| letter.is_ascii_digit());
        let is_made = has_digit && (word.len() > 6 || word.contains(':'));
        match word {
            _ if surfaces.contains(&word) => "surface",
            _ if word.starts_with("loop-") => "loop",
            _ if is_made => "#",
            _ => word,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_between_any_two_runs_is_left_out_and_nothing_else() {
        let run = |id: &str, surface: &str, took: u32| json!({ "id": id, "by": "pat", "channel": surface, "took_ms": took, "text": format!("Part 12 of {id} in loop-{took}.") });
        let surfaces = ["cli", "page"];
        let one = kept(run("0190f5fe-7c00-7000", "cli", 1), &surfaces);
        let other = kept(run("0190f5fe-8d11-7000", "page", 2), &surfaces);
        assert_eq!(one, other);
        assert!(one.contains("Part 12") && one.contains("pat"), "{one}");
        let third = kept(run("0190f5fe-7c00-7000", "phone", 1), &surfaces);
        assert_ne!(one, third);
    }
}
