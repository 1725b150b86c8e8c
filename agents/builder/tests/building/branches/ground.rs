//! What the branch of a build begins with, and what a repository does not take.

use std::os::unix::fs::symlink;

use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use serde_json::{Value, json};

use crate::world::project::{Project, git, writes};

fn one_task() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "test -s a.txt", "expected": "exit 0" },
    }])
}

fn project() -> Project {
    Project::new(&writes("T-1", "a.txt", "good\n", None))
}

/// Builds the one task on what the project holds, and returns the build with the project still open.
async fn built(project: &Project) -> (crate::world::project::OpenProject, Build) {
    let open = project.open().await;
    let spec = open.approve(one_task()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    (open, build)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_that_the_repository_refuses_is_asked_about_and_goes_on_once_it_can_be() {
    let project = project();
    git(&project.repo(), &["branch", "build"]);
    let open = project.open().await;
    let spec = open.approve(one_task()).await;
    let (paused, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(paused.pause_reason, Some(PauseReason::Conflict));
    let [question] = open.questions("branch_refused").await.try_into().unwrap();
    assert!(
        question.text.contains("build/habits") && question.text.contains("refs/heads/build"),
        "{}",
        question.text
    );
    open.git(&["branch", "-D", "build"]);
    open.answer_about_build("try-again").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let head = build.head.unwrap();
    assert_eq!(open.git(&["rev-parse", "build/habits"]), head.as_str());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_whose_branch_is_refused_can_be_stopped() {
    for in_the_way in ["build", "build/habits/x"] {
        let project = project();
        git(&project.repo(), &["branch", in_the_way]);
        let open = project.open().await;
        let spec = open.approve(one_task()).await;
        open.until(spec, |build, _| build.state == BuildState::Paused)
            .await;
        open.answer_about_build("stop").await;
        let (build, _) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Stopped, "{:?}", build.reason);
        assert_eq!(open.questions("branch_refused").await.len(), 1);
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_or_link_of_the_user_stays_where_the_idea_would_lie() {
    for place in ["ideas", "ideas/habits"] {
        let project = project().with_files(&[(place, "mine\n")]);
        let (open, build) = built(&project).await;
        let shown = open.git(&["show", &format!("{}:{place}", build.branch)]);
        assert_eq!(shown, "mine", "{place}");
        // What did not come along is named to nobody who builds.
        let told = project.prompts("T-1").concat();
        assert!(told.contains("# BUILD TASK: T-1"), "{told}");
        assert!(!told.contains("spec.md"), "{told}");
        open.close().await;
    }
    let project = project();
    symlink("README.md", project.repo().join("ideas")).unwrap();
    let project = project.with_files(&[]);
    let (open, build) = built(&project).await;
    let shown = open.git(&["show", &format!("{}:ideas", build.branch)]);
    assert_eq!(shown, "README.md");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_branch_holds_the_plan_that_was_approved_and_not_what_a_person_made_of_it_since() {
    let project = project();
    let folder = project.state().join("users/ada/ideas/habits/build");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tasks.md"), "# Something else\n").unwrap();
    std::fs::write(folder.join("spec.md"), "# Something else\n").unwrap();
    std::fs::write(folder.join("notes.md"), "By the way.\n").unwrap();
    let attached = project.state().join("users/ada/ideas/habits/attachments");
    std::fs::create_dir_all(&attached).unwrap();
    std::fs::write(attached.join("photo.jpg"), "A photo.\n").unwrap();
    let (open, build) = built(&project).await;
    let at = |file: &str| format!("{}:ideas/habits/build/{file}", build.branch);
    let tasks = open.git(&["show", &at("tasks.md")]);
    assert!(
        tasks.contains("T-1") && !tasks.contains("Something else"),
        "{tasks}"
    );
    assert_eq!(open.git(&["show", &at("notes.md")]), "By the way.");
    let listed = open.git(&["ls-tree", "-r", "--name-only", &build.branch]);
    assert!(
        !listed.contains("build/spec.md"),
        "nobody approved it: {listed}"
    );
    assert!(!listed.contains("photo.jpg"), "it stays: {listed}");
    open.close().await;
}
