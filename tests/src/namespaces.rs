//! Runs a test where it may mount file systems and cut networks, root or not.
//!
//! The test runs itself again in user, mount, process and network namespaces of its own, in which it is root; whatever
//! it mounts or starts there is gone with it. A machine that has no such namespaces fails the test.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

/// Says to the second run that it is one.
const INSIDE: &str = "ROPEWALK_TEST_NAMESPACES";

/// Why a test could not run in namespaces of its own.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The operating system refused.
    #[error("cannot run `unshare`: install util-linux")]
    Start(#[source] io::Error),
    /// The test failed there, or there are no namespaces.
    #[error(
        "`{test}` failed in namespaces of its own (allow unprivileged user namespaces):\n{output}"
    )]
    Failed {
        /// The test.
        test: String,
        /// What it printed.
        output: String,
    },
}

/// Returns whether this process runs in namespaces of its own.
pub fn are_own() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs the test `name` of this test program, as `--exact` knows it, in namespaces of its own, with these variables.
pub fn run(name: &str, variables: &[(&str, &OsStr)]) -> Result<(), NamespaceError> {
    let program = std::env::current_exe().map_err(NamespaceError::Start)?;
    // A network of one's own begins with its loopback interface down.
    let begin = "ip link set lo up && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--net"])
        .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["sh", "-c", begin])
        .arg(program)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "yes")
        .envs(variables.iter().copied())
        .output()
        .map_err(NamespaceError::Start)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // A name that no test has would pass.
    if output.status.success() && said.contains("1 passed") {
        return Ok(());
    }
    Err(NamespaceError::Failed {
        test: name.to_owned(),
        output: format!("{said}{}", String::from_utf8_lossy(&output.stderr)),
    })
}
