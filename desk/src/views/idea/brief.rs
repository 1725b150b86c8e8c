//! The brief of an idea, as it lies in the idea's folder.

use std::path::Path;

use ropewalk_schemas::document;
use ropewalk_schemas::specification::BRIEF;

/// Reads what the brief in `folder` says, without the mark of who keeps it; nothing where none is written yet, or where it is
/// no document that a specification could be made of.
pub(super) fn read(folder: &Path) -> Option<String> {
    let path = folder.join(BRIEF);
    // A link would show what lies elsewhere.
    let found = path
        .symlink_metadata()
        .ok()
        .filter(std::fs::Metadata::is_file);
    let size = usize::try_from(found?.len()).ok()?;
    let bytes = (size <= document::MOST_BYTES).then(|| std::fs::read(&path).ok())??;
    let text = document::text(&bytes).ok()?;
    let said = document::without_mark(text).trim();
    (!said.is_empty()).then(|| said.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_brief_is_shown_as_it_is_meant_to_be_read_and_a_link_is_not() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("idea");
        assert_eq!(read(&folder), None);
        let path = folder.join(BRIEF);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let kept = format!(
            "# Walks\n\nA list.\n\n{} abc -->\n",
            document::KEPT_UP_TO_DATE
        );
        fs::write(&path, &kept).unwrap();
        assert_eq!(read(&folder).as_deref(), Some("# Walks\n\nA list."));
        fs::write(&path, "\n").unwrap();
        assert_eq!(read(&folder), None);
        fs::remove_file(&path).unwrap();
        fs::write(place.path().join("other.md"), kept).unwrap();
        std::os::unix::fs::symlink("../../other.md", &path).unwrap();
        assert_eq!(read(&folder), None);
    }
}
