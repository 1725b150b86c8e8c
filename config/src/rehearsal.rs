//! Hands out the files of `rehearsal/` as they are.

/// The shipped files.
const FILES: [(&str, &str); 2] = [
    ("model.yaml", include_str!("../rehearsal/model.yaml")),
    ("person.yaml", include_str!("../rehearsal/person.yaml")),
];

/// Returns the text of the shipped rehearsal file `name`, if there is one.
pub fn file(name: &str) -> Option<&'static str> {
    FILES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Lists the names of the shipped rehearsal files.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}
