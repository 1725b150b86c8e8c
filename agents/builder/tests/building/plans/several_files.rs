//! A task that changes several files of another build.

use std::time::Duration;

use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::ChangeRequestState;
use serde_json::json;

use super::two_builds::{check_follows, create, owner, update};
use crate::world::project::{PATIENCE, Project, task};
use crate::world::script::{append, steps};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_answer_hands_over_every_file_that_its_task_asks_for() {
    let files = ["a.ts", "b.ts", "c.ts"];
    let mut script = steps("ALL", &[append("ALL", "a.ts")]);
    for (name, file) in ["MAKE_A", "MAKE_B", "MAKE_C"].iter().zip(files) {
        script.push_str(&steps(name, &[append(name, file)]));
    }
    let project = Project::new(&script)
        .with(|options| options.loops = 3)
        .watched();
    // The plan in the folder is none, so that the branch of each gets its own.
    let folder = project.state().join("users/ada/ideas/habits/build");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tasks.md"), "# Something else\n").unwrap();
    let open = project.open().await;
    let first = open
        .approve(json!([
            create("MAKE_A", "a.ts"),
            create("MAKE_B", "b.ts"),
            create("MAKE_C", "c.ts")
        ]))
        .await;
    let (one, _) = open.ended(first).await;
    let mut all = update("ALL", "a.ts");
    all["more_files"] = json!(["b.ts", "c.ts"]);
    let second = open.approve(json!([all])).await;
    open.until(second, |_, tasks| {
        let requests = task(tasks, "ALL").change_requests.iter();
        let open = requests.filter(|request| request.state == ChangeRequestState::Requested);
        open.count() == files.len()
    })
    .await;
    let asked = async {
        while open.open_question("ALL").await.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked)
        .await
        .expect("nobody is asked");
    open.settled().await;
    let [question] = open.questions("change_requested").await.try_into().unwrap();
    for file in files {
        let named = format!("• `{file}`, of `{}`", one.branch);
        assert!(question.text.contains(&named), "{}", question.text);
    }
    open.answer("ALL", "go-on").await;
    let (two, tasks) = open.ended(second).await;
    assert_eq!(two.state, BuildState::Succeeded, "{:?}", two.reason);
    let applied = ChangeRequestState::Applied;
    let requests = &task(&tasks, "ALL").change_requests;
    assert!(
        requests.iter().all(|request| request.state == applied),
        "{requests:?}"
    );
    for file in files {
        assert_eq!(owner(&open, file).await.unwrap().build, two.id);
    }
    check_follows(&open, &project, two.id, &one).await;
    let plan = open.git(&[
        "show",
        &format!("{}:ideas/habits/build/tasks.md", two.branch),
    ]);
    assert!(plan.contains("ALL") && !plan.contains("MAKE_A"), "{plan}");
    open.close().await;
}
