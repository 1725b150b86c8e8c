//! Hides what is private among the programs of a machine, as far as a bounded search finds it.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ropewalk_schemas::amount::counted_as;

use super::{DEPTH, there};
use crate::sandbox::plan::Mount;

/// Where whoever keeps the machine puts programs, and much else beside.
pub(super) const OWN: [&str; 2] = ["/opt", "/usr/local"];
/// So many files beside programs are hidden at most, the nearest first: each takes a mount, and each command all of them.
const MOST_HIDDEN: usize = 256;
/// So much of what lies beside programs is looked at.
const MOST_LOOKED_AT: usize = 16_384;

/// Where looking for private files beside programs ended before all was looked at: what lies there is not hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchGap {
    /// The directory that was looked at in part.
    directory: PathBuf,
    /// How many more were to be looked at, with all that lies in them.
    more: usize,
    bound: SearchBound,
}

/// What ends a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchBound {
    Hidden,
    LookedAt,
}

impl fmt::Display for SearchGap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "commands may read private files in `{}`",
            self.directory.display()
        )?;
        if self.more > 0 {
            let more = counted_as(self.more, "more directory", "more directories");
            write!(formatter, " and {more}")?;
        }
        let [one, other] = OWN;
        write!(
            formatter,
            ", since of `{one}` and `{other}` nothing is looked at behind "
        )?;
        match self.bound {
            SearchBound::Hidden => write!(formatter, "{MOST_HIDDEN} hidden files")?,
            SearchBound::LookedAt => write!(formatter, "{MOST_LOOKED_AT} entries")?,
        }
        write!(
            formatter,
            "; keep such files elsewhere, `find {one} {other} -type f ! -perm /155` lists them"
        )
    }
}

/// Hides each file below `roots` that its owner alone may read and nobody may start. Directories stay, and so does what a
/// group may read: whole trees of tools are closed to others, as by an owner with the umask 027. Says where it stopped at a
/// bound.
pub(super) fn hidden<'a>(
    roots: impl IntoIterator<Item = &'a Path>,
) -> (Vec<Mount>, Option<SearchGap>) {
    // Behind a link it would lie elsewhere, and be seen there or not.
    let is_real = |root: &&Path| there(root).as_deref() == Some(*root);
    let roots = roots.into_iter().filter(is_real);
    let mut open: VecDeque<_> = roots.map(|root| (root.to_owned(), 1)).collect();
    let (mut found, mut looked_at) = (Vec::new(), 0);
    while let Some((directory, depth)) = open.pop_front() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let bound = match (found.len(), looked_at) {
                (MOST_HIDDEN, _) => Some(SearchBound::Hidden),
                (_, MOST_LOOKED_AT) => Some(SearchBound::LookedAt),
                _ => None,
            };
            if let Some(bound) = bound {
                let more = open.len();
                let unsearched = SearchGap {
                    directory,
                    more,
                    bound,
                };
                return (found, Some(unsearched));
            }
            looked_at += 1;
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() && depth < DEPTH {
                open.push_back((entry.path(), depth + 1));
            } else if metadata.is_file() && is_private(&metadata) && !is_program(&metadata) {
                found.push(Mount::Hide(entry.path()));
            }
        }
    }
    (found, None)
}

/// Says that nobody but its owner may read it.
fn is_private(file: &Metadata) -> bool {
    file.permissions().mode() & 0o044 == 0
}

/// Says that somebody may start it.
fn is_program(file: &Metadata) -> bool {
    file.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::super::lasts;
    use super::*;

    /// Makes a file or, where its name ends with a slash, a directory.
    fn make(place: &Path, mode: u32) {
        if place.as_os_str().as_encoded_bytes().ends_with(b"/") {
            fs::create_dir_all(place).unwrap();
        } else {
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, "").unwrap();
        }
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_beside_programs_that_its_owner_alone_may_read_is_hidden_and_no_directory_is_closed() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        let place = |name: &str| root.join(name);
        for (name, mode) in [
            ("app/.env", 0o600),
            ("app/README", 0o644),
            ("bin/run", 0o711),
            ("bin/wrapper", 0o700),
            ("bin/notes", 0o600),
            ("etc/own/token", 0o600),
            ("kept/inner/key", 0o600),
            ("kept/inner/deep/key", 0o600),
            ("kept/inner/open", 0o644),
            ("tool/bin/tool", 0o750),
            ("tool/modules", 0o640),
            ("app/", 0o755),
            ("kept/inner/", 0o700),
            ("kept/", 0o700),
            ("tool/bin/", 0o750),
            ("tool/", 0o750),
        ] {
            make(&place(name), mode);
        }
        let (mut found, unsearched) = hidden([root.as_path()]);
        assert_eq!(unsearched, None);
        found.sort_by(|one, other| one.place().cmp(other.place()));
        assert_eq!(
            found,
            ["app/.env", "bin/notes", "etc/own/token", "kept/inner/key"]
                .map(|name| Mount::Hide(place(name)))
        );
        assert!(found.iter().all(lasts));
        fs::remove_file(place("app/.env")).unwrap();
        assert_eq!(found.iter().filter(|mount| lasts(mount)).count(), 3);
        // Where it is not what it is called, something else would be covered.
        std::os::unix::fs::symlink(&root, place("link")).unwrap();
        let linked = hidden([place("link").as_path()]);
        assert_eq!(linked, (Vec::new(), None));
    }

    #[test]
    fn beside_programs_the_nearest_files_are_hidden_first_and_only_so_many() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        for number in 0..MOST_HIDDEN {
            make(&root.join(format!("many/keys/{number}")), 0o600);
        }
        let (found, unsearched) = hidden([root.as_path()]);
        assert_eq!((found.len(), unsearched), (MOST_HIDDEN, None));
        make(&root.join("token"), 0o600);
        let (found, unsearched) = hidden([root.as_path()]);
        assert_eq!(found.len(), MOST_HIDDEN);
        assert!(found.contains(&Mount::Hide(root.join("token"))));
        let keys = root.join("many/keys");
        let told = format!(
            "commands may read private files in `{}`, since of `/opt` and `/usr/local` nothing is looked at behind 256 \
             hidden files; keep such files elsewhere, `find /opt /usr/local -type f ! -perm /155` lists them",
            keys.display()
        );
        assert_eq!(unsearched.map(|there| there.to_string()), Some(told));
    }

    #[test]
    fn beside_programs_so_many_entries_are_looked_at_and_what_lies_behind_them_is_told() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap();
        let [token, key] = ["token", "wide/keys/key"].map(|name| root.join(name));
        make(&token, 0o600);
        make(&key, 0o600);
        // With these, the two of the root and the key, all that may be looked at is.
        let wide = root.join("wide");
        for number in 0..MOST_LOOKED_AT - 4 {
            fs::create_dir(wide.join(format!("{number}"))).unwrap();
        }
        let [token, key] = [token, key].map(Mount::Hide);
        let all = (vec![token.clone(), key], None);
        assert_eq!(hidden([root.as_path()]), all);
        fs::create_dir(wide.join("one-more")).unwrap();
        let (found, unsearched) = hidden([root.as_path()]);
        assert_eq!(found, [token]);
        let unsearched = unsearched.unwrap();
        assert_eq!(unsearched.directory, wide.join("keys"));
        assert_eq!(unsearched.bound, SearchBound::LookedAt);
        let told = unsearched.to_string();
        assert!(told.contains("behind 16384 entries"), "{told}");
    }
}
