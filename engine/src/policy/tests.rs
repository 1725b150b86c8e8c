use std::sync::Mutex;

use ropewalk_config::settings::ScopedRules;
use serde_json::{Value, json};

use super::*;

/// Makes rules of lines such as `deny bash rm *`.
fn rules(lines: &[&str]) -> Vec<Rule> {
    let written = lines.iter().map(|line| {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().unwrap();
        json!({ "action": part(), "permission": part(), "pattern": part() })
    });
    serde_json::from_value(written.collect::<Value>()).unwrap()
}

fn policy(mode: PermissionMode, rules: ScopedRules) -> Policy {
    Policy::new(PolicySettings { mode, rules })
}

fn of_user(lines: &[&str]) -> Policy {
    let user = rules(lines);
    let scoped = ScopedRules {
        user,
        ..ScopedRules::default()
    };
    policy(PermissionMode::FullAuto, scoped)
}

/// Who calls in these tests.
const CALLER: Caller<'_> = Caller {
    agent: "attempt/1",
    tool: "bash",
    at: DateTime::UNIX_EPOCH,
};

async fn may(policy: &Policy, permission: Permission, subject: &str) -> bool {
    let subjects = [subject.to_owned()];
    policy.admit(CALLER, permission, &subjects).await.is_ok()
}

#[tokio::test]
async fn in_one_scope_the_last_rule_that_matches_counts() {
    let forth = of_user(&["allow write **", "deny write src/**"]);
    let back = of_user(&["deny write src/**", "allow write **"]);
    for (policy, path, expected) in [
        (&forth, "src/a", false),
        (&forth, "./src//a", false),
        (&forth, "doc/a", true),
        (&back, "src/a", true),
    ] {
        let found = may(policy, Permission::Write, path).await;
        assert_eq!(found, expected, "{path}");
    }
    assert!(may(&forth, Permission::Read, "src/a").await);
}

#[tokio::test]
async fn across_scopes_a_deny_stands_and_else_the_later_scope_counts() {
    // By user, project, flags and machine: what each says of the same thing, and what comes of it.
    let table = [
        (["deny", "allow", "allow", ""], false),
        (["allow", "deny", "allow", ""], false),
        (["allow", "allow", "deny", ""], false),
        (["allow", "allow", "allow", "deny"], false),
        (["allow", "allow", "allow", "ask"], false),
        (["ask", "ask", "ask", "allow"], true),
        (["ask", "allow", "", ""], true),
        (["allow", "ask", "", ""], false),
        (["ask", "ask", "allow", ""], true),
        (["allow", "", "ask", ""], false),
        (["", "", "", ""], true),
    ];
    for (said, expected) in table {
        let [user, project, flags, managed] = said.map(|action| match action {
            "" => Vec::new(),
            action => rules(&[format!("{action} bash git push *").as_str()]),
        });
        let scoped = ScopedRules {
            user,
            project,
            flags,
            managed,
            shipped: Vec::new(),
        };
        let policy = policy(PermissionMode::FullAuto, scoped);
        let found = may(&policy, Permission::Bash, "git push origin").await;
        assert_eq!(found, expected, "{said:?}");
    }
    // What ships stands in the scope of the user, who may think otherwise; a project may not.
    let shipped = rules(&["deny bash sudo *"]);
    for (user, project, expected) in [
        (rules(&["allow bash sudo *"]), Vec::new(), true),
        (Vec::new(), rules(&["allow bash sudo *"]), false),
    ] {
        let scoped = ScopedRules {
            shipped: shipped.clone(),
            user,
            project,
            flags: Vec::new(),
            managed: Vec::new(),
        };
        let policy = policy(PermissionMode::FullAuto, scoped);
        assert_eq!(may(&policy, Permission::Bash, "sudo x").await, expected);
    }
}

#[tokio::test]
async fn each_command_of_a_line_is_judged() {
    let policy = of_user(&[
        "deny bash rm *",
        "deny write **/.env",
        "ask bash npm publish *",
    ]);
    for line in [
        "rm x",
        "cd src && rm -rf ../x",
        "echo $(rm x)",
        "true | /bin/rm x",
        "bash -c 'rm x'",
        "xargs rm < list",
        "echo KEY=1 > .env",
        "cat a >> src/.env",
        "npm run build; npm publish",
        "$TOOL x",
        "echo 'unfinished",
        "bash -eo pipefail -c 'rm x'",
        "curl x | sh -",
        "bash - <<'EOF'\nrm x\nEOF",
        "npm > log publish",
    ] {
        assert!(!may(&policy, Permission::Bash, line).await, "{line}");
    }
    for line in [
        "cargo test && cargo fmt",
        "echo rm x",
        "grep rm src",
        "echo x > src/env",
        "npm run publish",
        "bash -eo pipefail build.sh",
        "sh -e build.sh -",
        "npm > publish run",
    ] {
        assert!(may(&policy, Permission::Bash, line).await, "{line}");
    }
    let only = of_user(&["deny bash *", "allow bash cargo *", "allow bash cd *"]);
    assert!(may(&only, Permission::Bash, "cd src && cargo test").await);
    for line in ["cargo test; curl x", "./cargo x", "timeout 5 cargo test"] {
        assert!(!may(&only, Permission::Bash, line).await, "{line}");
    }
}

#[tokio::test]
async fn a_redirection_is_judged_by_what_may_be_written() {
    let policy = of_user(&["deny write **/.env"]).rooted_at(Path::new("/far/slot"));
    for line in [
        "echo K >& .env",
        "F=.env; echo K > $F",
        "D=web; echo K > \"$D/.env\"",
        "echo K > $F",
        "echo K > \"$PWD/.env\"",
        "echo K > $(pwd)/web/.env",
        "echo K > /far/slot/.env",
        "echo K > /far/./slot/web/../.env",
        "echo K > ../slot/.env",
        "cd web && echo K > ../.env",
        "cd web && echo K > .env",
        "cd \"$D\" && echo K > .env",
        "cd /far/slot/web && echo K > .env",
        "echo K > .en[v]",
        "> .env",
        "echo K > ~/.env",
        "export TMPDIR=.; bash -c 'echo K > $TMPDIR/.env'",
        "F=x; printf -vF .env; echo K > $F",
        "mktemp() { echo .env; }; echo K > $(mktemp)",
        "F=x make > $F",
        "F='.en?'; echo K > $F",
        "FOO=x; export F\"O\"O=.env; echo K > $FOO",
        "false && F=x; echo K > \"$F.env\"",
        "for f in a .env; do echo K > \"$f\"; done",
        "for f in .e*; do echo K > \"$f\"; done",
        "while read f; do echo K > \"$f\"; done",
        "echo K > $(mktemp).env",
        "env -i sh -c 'echo K > $TMPDIR/far/slot/.env'",
    ] {
        assert!(!may(&policy, Permission::Bash, line).await, "{line}");
    }
    for line in [
        "cargo test 2>&1 >&2 | tail",
        "echo x >&- 2>&-",
        "cargo test > $OUT/test.log",
        "for f in a b; do sort $f > \"$f.new\" && mv $f.new $f; done",
        "T=$(mktemp); sort a > \"$T\" && mv \"$T\" a",
        "out=$(mktemp -d); echo x > \"$out/.env\"",
        "for f in a b; do echo x > \"$f\"; done",
        "for f in src/*.rs; do sort a > \"$f\"; done",
        "echo x > \"$HOME/x\"",
        "L=build.log; make > $L 2>&1",
        "make > \"$TMPDIR/.env\"",
        "make > /tmp/.env",
        "make > ~/build.log",
        "make > /far/slot2/.env",
        "make > ../.env",
        "make > /dev/null",
        "cd web && make > ../build.log",
        "cd \"$D\" && make > build.log",
        "sort 2>/dev/null \"$F\"",
        "cat > a.txt <<'EOF'\n> .env\nEOF",
    ] {
        assert!(may(&policy, Permission::Bash, line).await, "{line}");
    }
    // Whatever it is called, it may be written where no rule keeps anything from being written.
    let line = "echo K > $F";
    for (rules, expected) in [
        (&["deny bash rm *"] as &[&str], true),
        (&["deny write **/.env", "allow write **"], true),
        (&["allow write **", "deny write **/.env"], false),
        (&["ask write src/**"], false),
        (&["deny * **/.env"], false),
    ] {
        let found = may(&of_user(rules), Permission::Bash, line).await;
        assert_eq!(found, expected, "{rules:?}");
    }
}

#[tokio::test]
async fn a_redirection_is_judged_by_where_the_line_is() {
    let web = of_user(&["deny write web/**"]);
    for (line, expected) in [
        ("cd web && make > x", false),
        ("cd web && make > ../x", true),
        ("make > $OUT/x", false),
        ("make > x", true),
        ("(cd web && npm ci); make > out.log", true),
        ("make > out.log; cd web", true),
        ("env -C web bash -c 'make > x'", false),
        ("eval 'cd a'; cd web; make > x", false),
        ("OLDPWD=web; cd -; make > x", false),
        ("cd web; cd ..; cd -; make > x", false),
        ("CDPATH=web; cd sub; make > x", false),
        ("sudo -D web bash -c 'make > x'", false),
        ("pushd web; make > x; popd", false),
        ("cd -P web && make > x", false),
        ("cd -- web; make > x", false),
        ("cd \"$D\"; make > x", false),
        ("{ cd web; make; } > out.log", true),
        ("{ cd web; make; } > out.log; make > x", false),
    ] {
        assert_eq!(may(&web, Permission::Bash, line).await, expected, "{line}");
    }
}

#[tokio::test]
async fn a_mode_bounds_what_no_rule_speaks_of() {
    use Permission::{Bash, Read, Write};
    use PermissionMode::{Edit, FullAuto, Plan};
    let table = [
        (FullAuto, [(Read, true), (Write, true), (Bash, true)]),
        (Edit, [(Read, true), (Write, true), (Bash, false)]),
        (Plan, [(Read, true), (Write, false), (Bash, false)]),
    ];
    for (mode, expected) in table {
        for (permission, expected) in expected {
            let policy = policy(mode, ScopedRules::default());
            let found = may(&policy, permission, "a").await;
            assert_eq!(found, expected, "{mode:?} {permission:?}");
        }
    }
    let allowed = |mode| {
        let user = rules(&["allow bash cargo *", "allow write **"]);
        let scoped = ScopedRules {
            user,
            ..ScopedRules::default()
        };
        policy(mode, scoped)
    };
    assert!(may(&allowed(Edit), Bash, "cargo test").await);
    assert!(!may(&allowed(Edit), Bash, "cargo test; ls").await);
    assert!(!may(&allowed(Plan), Bash, "cargo test").await);
    assert!(!may(&allowed(Plan), Write, "a").await);
}

#[tokio::test]
async fn what_ships_refuses_other_rights_and_the_secrets_of_a_project() {
    let shipped = ropewalk_config::Config::shipped().unwrap();
    let policy = Policy::new(*shipped.policy);
    for line in [
        "sudo apt install x",
        "cd x && /usr/bin/sudo -n true",
        "su - root",
        "doas ls",
        "printf KEY=1 > .env",
    ] {
        assert!(!may(&policy, Permission::Bash, line).await, "{line}");
    }
    for path in [".env", "web/.env"] {
        assert!(!may(&policy, Permission::Write, path).await, "{path}");
    }
    for line in [
        "cargo test",
        "git diff",
        "ls | wc -l",
        "sum x",
        "touch a.env",
    ] {
        assert!(may(&policy, Permission::Bash, line).await, "{line}");
    }
    assert!(may(&policy, Permission::Write, ".env.example").await);
    assert!(may(&policy, Permission::Read, ".env").await);
}

#[test]
fn only_what_is_never_done_is_forbidden_as_a_whole() {
    let rows = [
        (&["deny bash *"] as &[&str], true),
        (&["deny bash **"], true),
        (&["deny * **"], true),
        (&["deny bash rm *"], false),
        (&["deny bash *", "allow bash ls"], false),
        (&["allow bash ls", "deny bash *"], true),
        (&["ask bash *"], false),
        (&["deny write **"], false),
    ];
    for (lines, expected) in rows {
        let found = of_user(lines).forbids(Permission::Bash);
        assert_eq!(found, expected, "{lines:?}");
    }
    let plan = policy(PermissionMode::Plan, ScopedRules::default());
    assert!(plan.forbids(Permission::Write) && !plan.forbids(Permission::Read));
}

/// Answers the same to everybody, and remembers who asked.
struct ConstantApprover {
    answer: Approval,
    asked: Mutex<Vec<ApprovalRequest>>,
}

#[async_trait]
impl Approver for ConstantApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Approval {
        self.asked.lock().unwrap().push(request.clone());
        self.answer.clone()
    }
}

#[tokio::test]
async fn what_is_left_to_a_person_waits_for_the_answer() {
    for (answer, expected) in [
        (Approval::Granted, Ok(())),
        (
            Approval::Denied("not on a friday".to_owned()),
            Err("not on a friday"),
        ),
    ] {
        let approver = Arc::new(ConstantApprover {
            answer,
            asked: Mutex::default(),
        });
        let policy = of_user(&["ask bash git push *"]).approved_by(approver.clone());
        // Whoever says yes says it to this line: without its quotes it would be another.
        let line = ["git status && git push origin 'main next'".to_owned()];
        let found = policy.admit(CALLER, Permission::Bash, &line).await;
        match expected {
            Ok(()) => assert_eq!(found, Ok(())),
            Err(part) => assert!(
                found.clone().is_err_and(|why| why.ends_with(part)),
                "{found:?}"
            ),
        }
        let request = ApprovalRequest {
            tool: "bash".to_owned(),
            subject: line[0].clone(),
            asked_by: AskedBy::Rule("ask bash `git push *`".to_owned()),
            agent: "attempt/1".to_owned(),
            at: DateTime::UNIX_EPOCH,
        };
        assert_eq!(*approver.asked.lock().unwrap(), [request]);
    }
}

#[tokio::test]
async fn a_line_that_cannot_be_read_is_left_to_a_person_whatever_rules_allow() {
    let line = ["$COMMAND --force".to_owned()];
    let nobody = of_user(&["allow bash **"]);
    let why = nobody.admit(CALLER, Permission::Bash, &line).await;
    let told = "not run: the rules cannot judge this line: what `$COMMAND --force` runs cannot be told before it runs; \
                name the program itself in the line. Where no rewriting helps: ";
    assert_eq!(why, Err(format!("{told}nobody is there; do without it")));
    let absent = Arc::new(ConstantApprover {
        answer: Approval::Denied("hand in with `blocked`".to_owned()),
        asked: Mutex::default(),
    });
    let policy = of_user(&["allow bash **"]).approved_by(absent);
    let why = policy.admit(CALLER, Permission::Bash, &line).await;
    assert_eq!(why, Err(format!("{told}hand in with `blocked`")));
    let approver = Arc::new(ConstantApprover {
        answer: Approval::Granted,
        asked: Mutex::default(),
    });
    let policy = of_user(&["allow bash **"]).approved_by(approver.clone());
    assert_eq!(policy.admit(CALLER, Permission::Bash, &line).await, Ok(()));
    let asked = approver.asked.lock().unwrap();
    let asked: Vec<_> = asked
        .iter()
        .map(|request| (request.subject.as_str(), &request.asked_by))
        .collect();
    assert_eq!(asked, [("$COMMAND --force", &AskedBy::Unreadable)]);
}
