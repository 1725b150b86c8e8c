use super::super::reply::{HeardDecision, HeardRisk};
use super::*;

fn heard(kind: &str, confidence: f64) -> HeardArtifact {
    HeardArtifact {
        kind: kind.to_owned(),
        summary: format!("the {kind}"),
        content: format!("All about the {kind}."),
        confidence,
    }
}

fn artifacts(kinds: &[(&str, f64)]) -> Reply {
    let artifacts = kinds
        .iter()
        .map(|(kind, confidence)| heard(kind, *confidence))
        .collect();
    Reply {
        artifacts,
        ..Reply::default()
    }
}

fn signals(kinds: &[(&str, f64)]) -> Signals {
    merge(&Signals::default(), &artifacts(kinds))
}

fn with_lines(validations: usize, risks: usize) -> Signals {
    let reply = Reply {
        decisions: (0..validations)
            .map(|number| HeardDecision {
                kind: "validation".to_owned(),
                summary: format!("assumption {number} holds"),
            })
            .collect(),
        risks: (0..risks)
            .map(|number| HeardRisk {
                summary: format!("risk {number}"),
                source: None,
            })
            .collect(),
        ..Reply::default()
    };
    merge(&Signals::default(), &reply)
}

#[test]
fn what_is_withdrawn_goes_and_what_is_new_stays() {
    let known = with_lines(3, 3);
    let reply = Reply {
        decisions: vec![HeardDecision {
            kind: "validation".to_owned(),
            summary: "assumption 9 holds".to_owned(),
        }],
        withdrawn: vec![
            "validation: Assumption 1 holds.".to_owned(),
            "risk 0".to_owned(),
        ],
        ..Reply::default()
    };
    let after = merge(&known, &reply);
    let decisions: Vec<&str> = after
        .decisions
        .iter()
        .map(|one| one.summary.as_str())
        .collect();
    assert_eq!(
        decisions,
        [
            "assumption 0 holds",
            "assumption 2 holds",
            "assumption 9 holds"
        ]
    );
    let risks: Vec<&str> = after.risks.iter().map(|one| one.summary.as_str()).collect();
    assert_eq!(risks, ["risk 1", "risk 2"]);
    assert_eq!(withdrawn_in_vain(&known, &reply), Vec::<String>::new());
    let again = withdrawn_in_vain(&after, &reply);
    assert!(
        again.len() == 2 && again[1].starts_with("`withdrawn[1]`, `risk 0`"),
        "{again:?}"
    );
}

#[test]
fn a_phase_is_left_only_when_its_gate_is_met() {
    let basics = [("target-user", 0.7), ("problem", 0.7)];
    let scope = |confidence| signals(&[("mvp-features", confidence), ("differentiator", 0.6)]);
    let sure = |confidence| Signals {
        confidence,
        ..Signals::default()
    };
    let cases = [
        (Phase::Exploring, signals(&basics), None),
        (
            Phase::Exploring,
            signals(&[basics[0], basics[1], ("differentiator", 0.9)]),
            None,
        ),
        (
            Phase::Exploring,
            signals(&[basics[0], basics[1], ("solution-concept", 0.1)]),
            Some(Phase::Narrowing),
        ),
        (Phase::Narrowing, scope(0.6), None),
        (Phase::Narrowing, scope(0.62), Some(Phase::Validating)),
        (Phase::Narrowing, signals(&[("mvp-features", 0.9)]), None),
        (Phase::Validating, with_lines(2, 1), None),
        (Phase::Validating, with_lines(3, 0), None),
        (Phase::Validating, with_lines(3, 1), Some(Phase::Refining)),
        (Phase::Refining, sure(0.75), None),
        (Phase::Refining, sure(0.76), Some(Phase::Complete)),
        (
            Phase::Refining,
            signals(&[("brief", 0.2)]),
            Some(Phase::Complete),
        ),
        (Phase::Complete, sure(1.0), None),
    ];
    for (phase, signals, expected) in cases {
        assert_eq!(
            next_phase(phase, Some(IdeaKind::Venture), &signals),
            expected,
            "{phase}: {signals:?}"
        );
    }
}

#[test]
fn what_has_to_be_known_depends_on_the_kind_of_idea() {
    use IdeaKind::{Feature, Fix, Product, Tool, Venture};
    let told = signals(&[("problem", 0.9), ("solution-concept", 0.9)]);
    // What nobody has named a kind for yet is held to what every idea is held to.
    let wins_nobody = [Some(Feature), Some(Fix), Some(Tool), None];
    let unproven = [&wins_nobody[..], &[Some(Product)]].concat();
    let scoped = signals(&[("mvp-features", 0.9)]);
    let risky = with_lines(0, 1);
    let nothing = signals(&[]);
    let cases = [
        (Phase::Exploring, &told, wins_nobody.as_slice()),
        (Phase::Narrowing, &scoped, &wins_nobody),
        (Phase::Validating, &nothing, &wins_nobody),
        (Phase::Validating, &risky, &unproven),
        (Phase::Refining, &nothing, &[]),
    ];
    let kinds = [Venture, Product, Tool, Feature, Fix].map(Some);
    for (phase, signals, enough) in cases {
        for kind in kinds.into_iter().chain([None]) {
            let next = next_phase(phase, kind, signals);
            assert_eq!(next.is_some(), enough.contains(&kind), "{phase} {kind:?}");
        }
    }
}

#[test]
fn the_brief_of_something_small_closes_every_phase() {
    let told = |confidence, brief| Signals {
        confidence,
        ..signals(&[("brief", brief)])
    };
    for phase in [
        Phase::Exploring,
        Phase::Narrowing,
        Phase::Validating,
        Phase::Refining,
    ] {
        let next = |kind, signals: &Signals| next_phase(phase, kind, signals);
        let ended = Some(Phase::Complete);
        assert_eq!(next(Some(IdeaKind::Feature), &told(0.8, 0.9)), ended);
        let step = phase.successors().first().copied();
        for (kind, signals) in [
            (None, told(0.8, 0.9)),
            (Some(IdeaKind::Venture), told(0.8, 0.9)),
            (Some(IdeaKind::Fix), told(0.7, 0.9)),
            (Some(IdeaKind::Fix), told(0.8, 0.5)),
        ] {
            let next = next(kind, &signals);
            assert!(next.is_none() || next == step, "{phase} {kind:?}: {next:?}");
        }
    }
    assert_eq!(
        next_phase(Phase::Complete, Some(IdeaKind::Fix), &told(1.0, 1.0)),
        None
    );
}

#[test]
fn an_average_of_exactly_the_limit_does_not_pass_by_rounding() {
    let kinds = [
        ("a", 0.1),
        ("b", 0.6),
        ("mvp-features", 0.7),
        ("differentiator", 0.9),
        ("c", 0.7),
    ];
    let signals = signals(&kinds);
    assert_eq!(
        next_phase(Phase::Narrowing, Some(IdeaKind::Venture), &signals),
        None,
        "{}",
        average_confidence(&signals)
    );
}

#[test]
fn two_gates_met_at_once_move_one_step() {
    let all = [
        ("target-user", 0.9),
        ("problem", 0.9),
        ("solution-concept", 0.9),
        ("mvp-features", 0.9),
        ("differentiator", 0.9),
    ];
    let signals = signals(&all);
    assert_eq!(
        next_phase(Phase::Exploring, None, &signals),
        Some(Phase::Narrowing)
    );
}

#[test]
fn the_newest_artifact_of_a_kind_is_kept_unless_it_is_too_unsure_to_be_saved() {
    let cases = [
        (0.7, 0.9, 0.9),
        (0.9, 0.6, 0.6),
        (0.9, 0.5, 0.9),
        (0.3, 0.2, 0.2),
    ];
    for (before, after, kept) in cases {
        let known = signals(&[("problem", before)]);
        let merged = merge(&known, &artifacts(&[("Problem", after)]));
        let found: Vec<f64> = merged
            .artifacts
            .iter()
            .map(|artifact| artifact.confidence)
            .collect();
        assert_eq!(found, [kept], "{before} then {after}");
    }
}

#[test]
fn a_placeholder_is_no_artifact() {
    let filler = |summary: &str, content: &str| Reply {
        artifacts: vec![HeardArtifact {
            summary: summary.to_owned(),
            content: content.to_owned(),
            ..heard("target-user", 0.9)
        }],
        ..Reply::default()
    };
    for (summary, content) in [
        ("User type 1", ""),
        ("users", "## Users\n- User type 1\n- User type 2"),
        ("TBD", "TBD"),
        ("Target users", "## Users\n\n<img src=x>"),
    ] {
        let merged = merge(&Signals::default(), &filler(summary, content));
        assert!(merged.artifacts.is_empty(), "{summary}/{content}");
    }
    // What only a summary says is said, whatever stands below it.
    for (summary, content, kept) in [
        ("Hikers", "", "Hikers"),
        (
            "devs who ship",
            "## devs\n\n<img src=x>",
            "devs who ship\n\n## devs\n\n<img src=x>",
        ),
    ] {
        let merged = merge(&Signals::default(), &filler(summary, content));
        assert_eq!(merged.artifacts[0].content, kept);
    }
}

#[test]
fn what_was_heard_twice_is_kept_once_and_an_unsaid_confidence_stays() {
    let reply = Reply {
        decisions: vec![
            HeardDecision {
                kind: "Validation".to_owned(),
                summary: "Ten users pay.".to_owned(),
            },
            HeardDecision {
                kind: "validation".to_owned(),
                summary: "ten users pay".to_owned(),
            },
        ],
        risks: vec![HeardRisk {
            summary: "Crowded".to_owned(),
            source: None,
        }],
        confidence: Some(0.4),
        ..Reply::default()
    };
    let once = merge(&Signals::default(), &reply);
    let twice = merge(
        &once,
        &Reply {
            confidence: None,
            ..reply
        },
    );
    assert_eq!(twice, once);
    assert_eq!(
        (twice.decisions.len(), twice.risks.len(), twice.confidence),
        (1, 1, 0.4)
    );
}

#[test]
fn an_opening_is_vague_below_fifty_characters_unless_the_readme_tells_the_problem() {
    let readme_of = |problem: &str| {
        format!("# Wellness\n\nA tracker.\n\n## Problem\n\n{problem}\n\n## Users\n- User type 1\n")
    };
    let told = "People forget small habits that keep them well, and notice weeks later.";
    let cases = [
        ("solar charger for hikers", None, true),
        (&"x".repeat(49), None, true),
        (&"x".repeat(50), None, false),
        ("wellness", Some(readme_of(told)), false),
        (
            "wellness",
            Some(readme_of(
                "[Describe the problem that your idea solves in detail]",
            )),
            true,
        ),
        ("wellness", Some(readme_of("TBD")), true),
    ];
    for (opening, readme, vague) in cases {
        let problem = readme.as_deref().and_then(stated_problem);
        assert_eq!(
            vague_opening(opening, problem.as_deref()).is_some(),
            vague,
            "{opening} {readme:?}"
        );
    }
}

#[test]
fn words_answer_a_question_of_those_to_whom_it_was_put() {
    let at = |second| DateTime::<Utc>::UNIX_EPOCH + chrono::TimeDelta::seconds(second);
    let asked = at(10);
    for (said, talks_since, is_told, expected) in [
        // Who talked by then went on talking.
        (11, Some(3), false, true),
        (10, Some(10), false, true),
        // It was written before there was a question.
        (9, Some(3), false, false),
        (9, None, true, false),
        // Who came later has seen none, unless told.
        (20, Some(11), false, false),
        (20, None, false, false),
        (20, None, true, true),
        (20, Some(11), true, true),
    ] {
        let answers = answers(asked, at(said), talks_since.map(at), is_told);
        assert_eq!(answers, expected, "{said} {talks_since:?} {is_told}");
    }
}
