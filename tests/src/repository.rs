//! Git repositories as people make them, in directories of tests.

use std::io;
use std::path::Path;
use std::process::Command;

/// The `ropewalk.toml` of a project beside its repository `repo`, whose models say what `script.yaml` holds.
pub const SCRIPTED: &str = r#"
[project]
name = "habits"
repo = "repo"
state = "state"

[person]
name = "pat"

[models]
chat = "script/any"
spec = "script/any"
build = "script/any"
small = "script/any"

[providers.script]
kind = "scripted"
script = "script.yaml"
"#;

/// Runs git in `directory` as a user with a name would, and returns what it says.
pub fn git(directory: &Path, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("git {arguments:?}: {said}")));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.trim().to_owned())
}

/// Writes a file, and the directories above it.
pub fn write(path: &Path, content: &str) -> io::Result<()> {
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    std::fs::write(path, content)
}

/// Makes a repository with one commit on `main`, which holds `files`.
pub fn begin(directory: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (path, content) in files {
        write(&directory.join(path), content)?;
    }
    git(directory, &["init", "-q", "-b", "main"])?;
    git(directory, &["add", "-A"])?;
    git(directory, &["commit", "-q", "--allow-empty", "-m", "Begin"])?;
    Ok(())
}
