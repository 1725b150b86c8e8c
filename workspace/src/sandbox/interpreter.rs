//! Finds the interpreter that a virtual environment of Python stands on, wherever its user keeps it.
//!
//! The environment may lie in a checkout, where a model writes: what it names is shown only where an interpreter really
//! lies there, and then no more of it than its programs and its library.

use std::fs;
use std::path::{Path, PathBuf};

/// What a virtual environment says of itself, in its root.
const SETTINGS: &str = "pyvenv.cfg";
/// How projects call theirs.
const NAMES: [&str; 3] = [".venv", "venv", "env"];
/// The parts of an interpreter that are shown.
const PARTS: [&str; 2] = ["bin", "lib"];

/// Returns the virtual environment that `programs`, a directory of the `PATH`, belongs to.
pub(super) fn environment_around(programs: &Path) -> Option<PathBuf> {
    let root = programs.parent()?;
    root.join(SETTINGS).is_file().then(|| root.to_owned())
}

/// Returns what the virtual environments of a checkout need beside it; nothing that holds `home`, or is held by
/// one of `writable`.
pub(super) fn below(directory: &Path, home: Option<&Path>, writable: &[PathBuf]) -> Vec<PathBuf> {
    let roots = NAMES.iter().map(|name| directory.join(name));
    let found = roots.flat_map(|root| needed_by(&root, home));
    let is_own = |place: &PathBuf| writable.iter().any(|own| place.starts_with(own));
    found.filter(|place| !is_own(place)).collect()
}

/// Returns what a virtual environment needs beside itself, as it is named and as it really lies.
pub(super) fn needed_by(environment: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let Some(named) = named_by(environment) else {
        return Vec::new();
    };
    let mut roots = vec![named.clone()];
    roots.extend(named.canonicalize());
    // Where the program itself is a link, its library lies beside what it leads to.
    let program = named.join("bin/python3").canonicalize().ok();
    roots.extend(program.and_then(|program| Some(program.parent()?.parent()?.to_owned())));
    roots.dedup();
    roots.retain(|root| is_interpreter(root, home));
    let parts = roots
        .iter()
        .flat_map(|root| PARTS.map(|part| root.join(part)));
    parts.collect()
}

/// Reads the root of the interpreter out of the settings of an environment.
fn named_by(environment: &Path) -> Option<PathBuf> {
    let settings = fs::read_to_string(environment.join(SETTINGS)).ok()?;
    let mut pairs = settings.lines().filter_map(|line| line.split_once('='));
    let (_, programs) = pairs.find(|(key, _)| key.trim() == "home")?;
    let programs = Path::new(programs.trim());
    let is_plain = programs.is_absolute() && programs.ends_with("bin");
    is_plain.then(|| programs.parent().map(Path::to_owned))?
}

/// Says that an interpreter lies there, in directories of its own, and no home around it.
fn is_interpreter(root: &Path, home: Option<&Path>) -> bool {
    let Ok(real) = root.canonicalize() else {
        return false;
    };
    let is_around = real.parent().is_none() || home.is_some_and(|home| home.starts_with(&real));
    let are_own = PARTS.iter().all(|part| {
        let place = root.join(part).canonicalize();
        place.is_ok_and(|place| place == real.join(part))
    });
    !is_around && are_own && real.join("bin/python3").is_file() && has_library(&real.join("lib"))
}

fn has_library(lib: &Path) -> bool {
    let entries = fs::read_dir(lib).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .any(|entry| entry.path().join("os.py").is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn make(root: &Path) {
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::create_dir_all(root.join("lib/python3.12")).unwrap();
        fs::write(root.join("bin/python3"), "").unwrap();
        fs::write(root.join("lib/python3.12/os.py"), "").unwrap();
    }

    #[test]
    fn an_interpreter_is_shown_as_named_and_as_it_lies_and_nothing_else_is() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let place = |name: &str| base.join(name);
        make(&place("ada/py/3.12.1"));
        symlink("3.12.1", place("ada/py/3.12")).unwrap();
        make(&place("ada"));
        fs::create_dir_all(place("ada/.ssh/bin")).unwrap();
        fs::create_dir_all(place("tricks/lib/python3.12")).unwrap();
        fs::write(place("tricks/lib/python3.12/os.py"), "").unwrap();
        symlink(place("ada/.ssh"), place("tricks/bin")).unwrap();
        fs::write(place("ada/.ssh/python3"), "").unwrap();
        let both = ["3.12/bin", "3.12/lib", "3.12.1/bin", "3.12.1/lib"];
        let both = both.map(|part| place("ada/py").join(part)).to_vec();
        let tree = place("tree");
        fs::create_dir_all(tree.join(".venv")).unwrap();
        for (home, expected) in [
            ("ada/py/3.12/bin", both),
            ("ada/bin", Vec::new()),
            ("ada/.ssh/bin", Vec::new()),
            ("tricks/bin", Vec::new()),
            ("missing/bin", Vec::new()),
        ] {
            let settings = format!("version = 3.12.1\nhome = {}\n", place(home).display());
            fs::write(tree.join(".venv/pyvenv.cfg"), settings).unwrap();
            let found = below(&tree, Some(&place("ada")), std::slice::from_ref(&tree));
            assert_eq!(found, expected, "{home}");
        }
        assert_eq!(
            environment_around(&tree.join(".venv/bin")),
            Some(tree.join(".venv"))
        );
    }
}
