//! Refuses a project's file that belongs to somebody else.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::Uid;

use crate::error::ConfigError;

/// Refuses a file, or a link to one, of another user: in a directory above, which others may write, it would decide for
/// whoever works below.
pub(crate) fn refuse_strangers(path: &Path) -> Result<(), ConfigError> {
    let unreadable = |error: std::io::Error| ConfigError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string().into(),
    };
    let link = path.symlink_metadata().map_err(unreadable)?;
    let mut owners = vec![link.uid()];
    // A link that leads nowhere is told by whoever reads the file.
    owners.extend(path.metadata().map(|file| file.uid()));
    let own = Uid::effective().as_raw();
    match owners.into_iter().find(|owner| is_strange(*owner, own)) {
        None => Ok(()),
        Some(owner) => Err(ConfigError::Stranger {
            path: path.to_owned(),
            owner,
        }),
    }
}

/// Root could do as it likes anyway.
const fn is_strange(owner: u32, own: u32) -> bool {
    owner != own && owner != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_files_and_those_of_root_are_taken() {
        for (owner, own, expected) in [
            (1000, 1000, false),
            (0, 1000, false),
            (1001, 1000, true),
            (0, 0, false),
            (1000, 0, true),
        ] {
            assert_eq!(is_strange(owner, own), expected, "{owner} for {own}");
        }
    }
}
