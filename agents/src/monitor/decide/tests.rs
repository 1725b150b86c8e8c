use chrono::{TimeDelta, TimeZone};
use ropewalk_schemas::agent::AgentState;
use ropewalk_schemas::alert::Alert;
use uuid::Uuid;

use super::*;

fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
}

fn limits() -> StuckMinutes {
    StuckMinutes(
        [("database", 5), ("tests", 15), ("other", 10)]
            .map(|(phase, minutes)| (phase.to_owned(), minutes))
            .into(),
    )
}

fn task(phase: &str) -> WatchedTask {
    WatchedTask {
        build: BuildId(Uuid::from_u128(1)),
        task: TaskId::parse("T-005").unwrap(),
        phase: phase.to_owned(),
        attempt: AttemptId(Uuid::from_u128(2)),
        loop_name: ComponentName::parse("loop-1").unwrap(),
        last_sign: noon(),
        waits: false,
    }
}

#[test]
fn a_task_is_stuck_after_the_minutes_of_its_phase() {
    let rows = [
        ("api", 600, None),
        ("api", 601, Some((10, Severity::Warning))),
        ("api", 1199, Some((19, Severity::Warning))),
        ("api", 1200, Some((20, Severity::Error))),
        ("api", 1800, Some((30, Severity::Critical))),
        ("database", 300, None),
        ("database", 301, Some((5, Severity::Warning))),
        ("tests", 900, None),
        ("tests", 901, Some((15, Severity::Warning))),
    ];
    for (phase, seconds, expected) in rows {
        let found = stuck(
            &[task(phase)],
            &limits(),
            noon() + TimeDelta::seconds(seconds),
        );
        let told = found.first().map(|cause| match &cause.finding {
            Finding::Stuck(stuck) => (stuck.idle_minutes, cause.severity),
            other @ Finding::Down(_) => panic!("{other:?}"),
        });
        assert_eq!(told, expected, "{phase} {seconds}");
    }
}

#[test]
fn a_task_that_waits_is_not_stuck() {
    let waiting = WatchedTask {
        waits: true,
        ..task("api")
    };
    assert_eq!(
        stuck(&[waiting], &limits(), noon() + TimeDelta::hours(5)),
        []
    );
}

#[test]
fn the_cause_of_a_stuck_task_reads_back() {
    let cause = &stuck(&[task("api")], &limits(), noon() + TimeDelta::hours(1))[0];
    let read = StuckCause::parse(&cause.key).unwrap();
    assert_eq!(
        (read.build, read.attempt),
        (task("api").build, task("api").attempt)
    );
    assert_eq!(read.to_string(), cause.key);
    for other in ["component/loop-1", "stuck/1/2/3", "stuck/"] {
        assert_eq!(StuckCause::parse(other), None, "{other}");
    }
}

fn component(silent_seconds: i64, stopped: bool) -> Component {
    Component {
        name: ComponentName::parse("loop-2").unwrap(),
        role: "build".to_owned(),
        process: "host-7".to_owned(),
        state: AgentState::Active,
        working_on: None,
        since: noon() - TimeDelta::hours(1),
        last_seen: noon() - TimeDelta::seconds(silent_seconds),
        stopped,
    }
}

#[test]
fn a_component_is_down_when_somebody_listened_to_its_silence() {
    let limit = Duration::from_secs(90);
    let rows = [
        // silent, stopped, listening for, down
        (89, false, 3600, false),
        (90, false, 3600, true),
        (90, true, 3600, false),
        (7200, false, 89, false),
        (7200, false, 90, true),
    ];
    for (silent, stopped, listening, expected) in rows {
        let since = noon() - TimeDelta::seconds(listening);
        let found = down(&[component(silent, stopped)], limit, since, noon());
        assert_eq!(
            found.len(),
            usize::from(expected),
            "{silent} {stopped} {listening}"
        );
    }
}

#[test]
fn the_components_of_one_process_are_told_of_once() {
    let named = |name: &str, process: &str| Component {
        name: ComponentName::parse(name).unwrap(),
        process: process.to_owned(),
        ..component(95, false)
    };
    let limit = Duration::from_secs(90);
    let components = [
        named("build-2", "host-7"),
        named("loop-2-1", "host-7"),
        named("loop-2-2", "host-7"),
        named("pm-3", "host-9"),
    ];
    let found = down(&components, limit, noon() - limit, noon());
    let keys: Vec<&str> = found.iter().map(|cause| cause.key.as_str()).collect();
    assert_eq!(keys, ["component/loop-2-1", "component/pm-3"]);
    for name in ["build-2", "loop-2-1", "loop-2-2"] {
        assert!(found[0].message.contains(name), "{}", found[0].message);
    }
    // Each loop leaves work of its own.
    let told = |cause: &Cause| match &cause.finding {
        Finding::Down(down) => down.iter().map(|down| down.component.to_string()).collect(),
        other @ Finding::Stuck(_) => panic!("{other:?}"),
    };
    let told: Vec<Vec<String>> = found.iter().map(told).collect();
    assert_eq!(told, [vec!["loop-2-1", "loop-2-2"], vec!["pm-3"]]);
}

#[test]
fn a_monitor_that_is_gone_is_told_of_while_there_is_no_other() {
    let named = |name: &str, role: &str, process: &str, silent: i64| Component {
        name: ComponentName::parse(name).unwrap(),
        role: role.to_owned(),
        process: process.to_owned(),
        ..component(silent, false)
    };
    let monitor = |silent: i64| named("monitor-3", "monitor", "host-9", silent);
    let another = |silent: i64| named("monitor-4", "monitor", "host-8", silent);
    let beside = named("pm-3", "pm", "host-9", 95);
    let builder = named("loop-2-1", "build", "host-7", 95);
    let stopped = Component {
        stopped: true,
        ..monitor(95)
    };
    let limit = Duration::from_secs(90);
    let rows: [(&[Component], i64, &[&str]); 8] = [
        // registered, listening for, told of
        (&[monitor(90)], 90, &["component/monitor-3"]),
        (&[monitor(89)], 3600, &[]),
        (&[monitor(3600)], 89, &[]),
        (&[monitor(95), another(89)], 3600, &[]),
        (
            &[monitor(95), another(90)],
            3600,
            &["component/monitor-4", "component/monitor-3"],
        ),
        (
            &[monitor(95), beside, builder.clone()],
            3600,
            &["component/monitor-3"],
        ),
        (&[stopped, builder.clone()], 3600, &[]),
        (&[builder], 3600, &[]),
    ];
    for (components, listening, expected) in rows {
        let since = noon() - TimeDelta::seconds(listening);
        let found = unwatched(components, limit, since, noon());
        let keys: Vec<&str> = found.iter().map(|cause| cause.key.as_str()).collect();
        assert_eq!(keys, expected, "{components:?} {listening}");
    }
}

#[test]
fn a_gap_in_listening_begins_it_anew() {
    let limit = Duration::from_secs(90);
    let first = listen(None, limit, noon());
    let second = listen(Some(first), limit, noon() + TimeDelta::seconds(89));
    assert_eq!(
        second,
        ListeningPeriod {
            since: noon(),
            last: noon() + TimeDelta::seconds(89)
        }
    );
    let after_sleep = noon() + TimeDelta::seconds(89 + 90);
    assert_eq!(listen(Some(second), limit, after_sleep).since, after_sleep);
}

fn alert(key: &str, severity: Severity) -> Alert {
    Alert {
        cause: key.to_owned(),
        severity,
        message: String::new(),
        build: None,
        raised_at: noon(),
        escalations: 0,
        acknowledged: None,
        cleared_at: None,
    }
}

#[test]
fn one_cause_has_one_alert_until_it_is_gone() {
    let now = noon() + TimeDelta::minutes(21);
    let cause = stuck(&[task("api")], &limits(), now).remove(0);
    let key = cause.key.clone();
    let raised = Move::Raise(cause.clone());
    let escalated = Move::Escalate {
        key: key.clone(),
        severity: Severity::Error,
        message: cause.message.clone(),
    };
    let rows = [
        (vec![cause.clone()], vec![], vec![raised]),
        (
            vec![cause.clone()],
            vec![alert(&key, Severity::Warning)],
            vec![escalated],
        ),
        (
            vec![cause.clone()],
            vec![alert(&key, Severity::Error)],
            vec![],
        ),
        (vec![cause], vec![alert(&key, Severity::Critical)], vec![]),
        (
            vec![],
            vec![alert(&key, Severity::Error)],
            vec![Move::Clear { key }],
        ),
        (
            vec![],
            vec![alert("component/loop-1", Severity::Error)],
            vec![],
        ),
        (vec![], vec![], vec![]),
    ];
    for (causes, open, expected) in rows {
        assert_eq!(moves(causes, &open, STUCK), expected);
    }
}

#[test]
fn a_period_is_written_as_a_cron_line() {
    for (seconds, line) in [
        (30, "*/30 * * * * *"),
        (60, "*/1 * * * *"),
        (150, "*/2 * * * *"),
        (0, "*/1 * * * * *"),
    ] {
        assert_eq!(cron_every(Duration::from_secs(seconds)), line, "{seconds}");
    }
}

#[test]
fn a_component_that_is_cleared_says_why() {
    assert!(cleared_component("loop-2", Some(&component(0, false))).contains("again"));
    assert!(cleared_component("loop-2", Some(&component(0, true))).contains("stopped"));
    assert!(cleared_component("loop-2", None).contains("no longer"));
}
