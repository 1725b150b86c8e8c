//! Looks at what confines commands, and at what bounds their memory and processes.

use ropewalk_config::Environment;
use ropewalk_desk::health::{Finding, Fitness};
use ropewalk_workspace::Level;
use ropewalk_workspace::sandbox::has_landlock;

use super::finding;
use crate::project::Project;
use crate::wiring;

/// What the check is called.
const CHECK: &str = "sandbox";
/// What the check of files that are not hidden is called.
const PRIVATE_FILES: &str = "private files";

/// Names what confines commands, and what bounds their memory and processes; and what they may read since nobody looked at it.
pub(super) async fn sandbox(project: &Project, environment: &Environment) -> Vec<Finding> {
    let found = wiring::confinement(project, environment).await;
    let level = match found {
        Ok(found) => match (found.sandbox, found.warning) {
            (Some(sandbox), _) => {
                let level = named(sandbox.level(), has_landlock());
                let mut findings = vec![
                    Finding::new(CHECK, Fitness::Ok, level),
                    Finding::new("limits", Fitness::Ok, sandbox.hold()),
                ];
                let unsearched = sandbox.unsearched();
                findings.extend(
                    unsearched.map(|there| Finding::new(PRIVATE_FILES, Fitness::Warn, there)),
                );
                return findings;
            }
            (None, Some(warning)) => return vec![Finding::new(CHECK, Fitness::Warn, warning)],
            (None, None) => Ok("off; every model is scripted".to_owned()),
        },
        Err(error) => Err(error),
    };
    vec![finding(CHECK, level)]
}

/// Names a level, and the fence that commands go without on a kernel that has none.
fn named(level: Level, has_landlock: bool) -> String {
    if has_landlock {
        level.to_string()
    } else {
        format!("{level}, without landlock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_landlock_is_named() {
        for (level, has_landlock, expected) in [
            (Level::Bubblewrap, true, "bubblewrap"),
            (Level::Bubblewrap, false, "bubblewrap, without landlock"),
            (Level::Namespaces, false, "namespaces, without landlock"),
        ] {
            assert_eq!(named(level, has_landlock), expected);
        }
    }
}
