//! Allocates the numbers of migrations, one count for the head and every plan that is not built yet.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::RepoPath;

/// Splits the path of a numbered migration into its directory and number: `database/migrations/007_habits.sql`.
pub(super) fn numbered(file: &RepoPath) -> Option<(&str, u32)> {
    let (directory, name) = file.as_str().rsplit_once('/')?;
    let last = directory.rsplit('/').next()?;
    if !last.to_lowercase().contains("migration") {
        return None;
    }
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let separated = name[digits..].starts_with(['_', '-', '.']);
    // A time stamp is no number of a count: two of them do not collide.
    let counted = (1..=6).contains(&digits) && separated;
    name[..digits]
        .parse()
        .ok()
        .filter(|_| counted)
        .map(|number| (directory, number))
}

/// Collects the numbers that are taken, by directory.
pub(super) fn taken<'a>(
    files: impl IntoIterator<Item = &'a RepoPath>,
) -> BTreeMap<String, BTreeSet<u32>> {
    let mut taken: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (directory, number) in files.into_iter().filter_map(numbered) {
        taken
            .entry(directory.to_owned())
            .or_default()
            .insert(number);
    }
    taken
}

/// Says for each directory of migrations which number comes next, a line each, in words for a model.
pub(super) fn next_numbers(taken: &BTreeMap<String, BTreeSet<u32>>) -> Vec<String> {
    taken
        .iter()
        .filter_map(|(directory, numbers)| {
            let next = numbers.last()?.checked_add(1)?;
            Some(format!(
                "The next migration in `{directory}` has the number {next:03}."
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbered_files_of_a_migration_directory_count() {
        let cases = [
            (
                "database/migrations/007_habits.sql",
                Some(("database/migrations", 7)),
            ),
            ("db/migration/1-init.sql", Some(("db/migration", 1))),
            ("migrations/20240101120000_init.sql", None),
            ("database/migrations/readme.md", None),
            ("src/001_a.rs", None),
            ("001_a.sql", None),
        ];
        for (path, expected) in cases {
            let path = RepoPath::parse(path).unwrap();
            assert_eq!(numbered(&path), expected, "{path}");
        }
    }

    #[test]
    fn the_next_number_follows_the_highest_of_head_and_plans() {
        let files = [
            "m/migrations/002_a.sql",
            "m/migrations/009_b.sql",
            "x/migrations/001_c.sql",
        ];
        let files = files.map(|path| RepoPath::parse(path).unwrap());
        assert_eq!(
            next_numbers(&taken(&files)),
            [
                "The next migration in `m/migrations` has the number 010.",
                "The next migration in `x/migrations` has the number 002."
            ]
        );
    }
}
