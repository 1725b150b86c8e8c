//! What judges a landing is confined, also where a verb lands while nobody runs.

use serde_json::json;

use super::built_by;
use crate::approvals::text;
use crate::world::World;

#[test]
fn a_check_of_a_landing_neither_writes_nor_reads_at_home() {
    let world = World::scripted();
    world.write("../home/.ssh/id", "the key of the person\n");
    let check = "touch ~/escaped && test ! -e ~/.ssh/id && test -s a.txt";
    let build = built_by(&world, check);
    world.write("b.txt", "beside\n");
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=beside"]);
    let preview = world.json(&format!("build land {build} --dry-run"));
    assert_eq!(
        (text(&preview["way"]), &preview["gate"]),
        ("merge", &json!(true))
    );
    // With nothing in its way the check would have found the key.
    let done = world.json(&format!("build land {build}"));
    assert_eq!(text(&done["way"]), "merge");
    assert!(!world.home().join("escaped").exists());
}
