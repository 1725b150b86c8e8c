use chrono::DateTime;
use proptest::prelude::*;
use ropewalk_schemas::{BuildId, RepoPath, TaskId};
use uuid::Uuid;

use super::*;

fn build(number: u128) -> BuildId {
    BuildId(Uuid::from_u128(number))
}

fn task(number: usize) -> Party {
    Party::Task {
        build: build(1),
        task: TaskId::parse(&format!("T-{number:03}")).unwrap(),
    }
}

fn lease(file: &str) -> Resource {
    Resource::Lease {
        path: RepoPath::parse(file).unwrap(),
    }
}

fn wait(waiter: Party, resource: Resource, holder: Option<Party>) -> Wait {
    Wait {
        waiter,
        resource,
        holder,
        since: DateTime::UNIX_EPOCH,
    }
}

fn lease_wait(waiter: usize, holder: usize) -> Wait {
    wait(
        task(waiter),
        lease(&format!("src/{holder}.rs")),
        Some(task(holder)),
    )
}

fn cycle_of(length: usize) -> Vec<Wait> {
    (0..length)
        .map(|member| lease_wait(member, (member + 1) % length))
        .collect()
}

/// Facts under which the member with the highest number is the least urgent.
fn by_number(party: &Party) -> Facts {
    let Party::Task { task, .. } = party else {
        panic!("no task: {party}")
    };
    Facts {
        yielded: 0,
        priority: task.as_str()[2..].parse::<u32>().unwrap() + 1,
        work_done: 0,
        age: 0,
    }
}

#[test]
fn a_cycle_of_two_to_five_is_found_at_its_last_edge_and_has_one_victim() {
    for length in 2..=5 {
        let waits = cycle_of(length);
        let (last, before) = waits.split_last().unwrap();
        let graph = WaitGraph::new(before);
        for earlier in before {
            assert_eq!(graph.cycle_with(std::slice::from_ref(earlier)), None);
        }
        let cycle = graph.cycle_with(std::slice::from_ref(last)).unwrap();
        let members: Vec<String> = (0..length).map(|member| task(member).to_string()).collect();
        assert_eq!(cycle.names(), members);
        assert_eq!(victim(&cycle, by_number), Some(task(length - 1)));
    }
}

#[test]
fn a_wait_for_a_person_is_drawn_and_closes_no_cycle() {
    let question = Resource::Person {
        question: Uuid::from_u128(7).into(),
    };
    let waits = [
        lease_wait(0, 1),
        // Even a wait that names the waiter as who could answer stays a sink.
        wait(task(1), question.clone(), Some(task(0))),
    ];
    let graph = WaitGraph::new(&waits);
    assert_eq!(graph.cycle_with(&waits), None);
    assert!(graph.cycles().is_empty());
    let line = format!("{} waits for {question}\n", task(1));
    assert!(graph.to_text().contains(&line), "{}", graph.to_text());
}

#[test]
fn two_builds_that_own_each_others_files_form_a_cycle_that_nobody_can_break() {
    let owned = |waiter: u128, owner: u128| {
        let waiter = Party::Task {
            build: build(waiter),
            task: TaskId::parse("T-001").unwrap(),
        };
        let path = RepoPath::parse("src/lib.rs").unwrap();
        wait(
            waiter,
            Resource::Ownership { path },
            Some(Party::Build {
                build: build(owner),
            }),
        )
    };
    let first = owned(1, 2);
    let second = owned(2, 1);
    let cycle = WaitGraph::new([&first]).cycle_with(&[second]).unwrap();
    assert_eq!(cycle.links.len(), 4);
    assert_eq!(victim(&cycle, |_| panic!("nobody holds a lease")), None);
}

#[test]
fn the_victim_has_the_lowest_priority_then_the_least_work_then_the_least_age() {
    let facts = |priority, work_done, age| Facts {
        yielded: 0,
        priority,
        work_done,
        age,
    };
    let cases = [
        ([facts(1, 0, 0), facts(2, 9, 9)], 1),
        ([facts(5, 1, 0), facts(5, 2, 0)], 0),
        ([facts(5, 1, 8), facts(5, 1, 7)], 1),
        ([facts(5, 1, 8), facts(5, 1, 8)], 0),
        // Whoever gave way three times is spared.
        (
            [
                facts(1, 9, 9),
                Facts {
                    yielded: 3,
                    ..facts(9, 0, 0)
                },
            ],
            0,
        ),
    ];
    let waits = cycle_of(2);
    let cycle = WaitGraph::new(&waits[..1]).cycle_with(&waits[1..]).unwrap();
    for (facts, expected) in cases {
        let chosen = victim(&cycle, |party| facts[usize::from(*party == task(1))]);
        assert_eq!(chosen, Some(task(expected)), "{facts:?}");
    }
}

#[test]
fn a_removed_wait_leaves_no_trace() {
    let waits = cycle_of(3);
    let mut graph = WaitGraph::new(&waits);
    assert_eq!(graph.cycles().len(), 1);
    for wait in &waits {
        graph.remove(&wait.waiter, &wait.resource);
    }
    assert_eq!(graph.graph.node_count(), 0);
    assert!(graph.nodes.is_empty());
}

#[test]
fn the_drawing_escapes_what_dot_would_read() {
    let waits = [wait(task(0), lease("src/\"a\".rs"), Some(task(1)))];
    let dot = WaitGraph::new(&waits).to_dot();
    assert!(dot.contains(r#"[label="lease/src/\"a\".rs"];"#), "{dot}");
    assert!(dot.starts_with("digraph waits {\n") && dot.ends_with("}\n"));
}

/// Reads XML as far as it takes to see that it is well-formed; answers the texts.
fn read_xml(mut rest: &str) -> Result<Vec<String>, String> {
    let (mut open, mut texts) = (Vec::new(), Vec::new());
    while let Some((text, tagged)) = rest.split_once('<') {
        let (tag, after) = tagged.split_once('>').ok_or("a tag has no end")?;
        rest = after;
        if text.contains('&') && !text.contains(';') || text.chars().any(|each| each == '\u{1}') {
            return Err(format!("bad text: {text}"));
        }
        texts.extend((!text.trim().is_empty()).then(|| text.to_owned()));
        if let Some(name) = tag.strip_prefix('/') {
            let opened = open.pop().ok_or("an end without a beginning")?;
            if opened != name {
                return Err(format!("{opened} ends as {name}"));
            }
            continue;
        }
        if !tag.matches('"').count().is_multiple_of(2) {
            return Err(format!("bad attributes: {tag}"));
        }
        if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or_default());
        }
    }
    if open.is_empty() && rest.trim().is_empty() {
        Ok(texts)
    } else {
        Err(format!("open: {open:?}, left: {rest}"))
    }
}

#[test]
fn the_picture_is_well_formed_and_names_everybody() {
    let odd = lease("src/<a>&\"b\".rs");
    let person = Resource::Person {
        question: Uuid::from_u128(7).into(),
    };
    let mut waits = vec![
        wait(task(7), odd, Some(task(8))),
        wait(task(8), person.clone(), None),
    ];
    waits.extend(cycle_of(3));
    for waits in [&waits[..], &[]] {
        let svg = WaitGraph::new(waits).to_svg();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
        let texts = read_xml(&svg).unwrap_or_else(|fault| panic!("{fault}\n{svg}"));
        for wait in waits {
            assert!(texts.contains(&wait.waiter.to_string()), "{svg}");
        }
        if !waits.is_empty() {
            assert!(texts.contains(&person.to_string()), "{svg}");
            let escaped = "lease/src/&lt;a&gt;&amp;&quot;b&quot;.rs".to_owned();
            assert!(texts.contains(&escaped), "{svg}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn an_acyclic_graph_raises_no_alarm(
        edges in proptest::collection::vec((0_usize..20, 0_usize..20), 0..30),
    ) {
        // An edge from the lower to the higher number closes no cycle.
        let waits: Vec<Wait> = edges
            .into_iter()
            .filter(|(one, other)| one != other)
            .map(|(one, other)| lease_wait(one.min(other), one.max(other)))
            .collect();
        let graph = WaitGraph::new(&waits);
        prop_assert!(graph.cycles().is_empty());
        prop_assert_eq!(graph.cycle_with(&waits), None);
    }
}

proptest! {
    #[test]
    fn a_cycle_inside_a_larger_graph_is_found_with_one_victim(
        edges in proptest::collection::vec((10_usize..40, 10_usize..40), 0..60),
        length in 2_usize..=5,
    ) {
        let mut waits: Vec<Wait> = edges
            .into_iter()
            .filter(|(one, other)| one != other)
            .map(|(one, other)| lease_wait(one.min(other), one.max(other)))
            .collect();
        // The cycle hangs below the rest, so that it is the only one.
        waits.push(lease_wait(40, 0));
        let closing = cycle_of(length);
        waits.extend_from_slice(&closing[1..]);
        let cycle = WaitGraph::new(&waits).cycle_with(&closing[..1]).unwrap();
        prop_assert_eq!(cycle.links.len(), length);
        prop_assert_eq!(victim(&cycle, by_number), Some(task(length - 1)));
    }
}
