//! Holds the ladder of budgets that is climbed before each model call: task, build, project, day.

use chrono::{DateTime, NaiveTime, Utc};
use ropewalk_runtime::Clock;
use ropewalk_schemas::build::{Build, Raise};
use ropewalk_schemas::model_call::Spending;
use ropewalk_store::{Query, ReadError, Store};

use crate::job::UsageScope;

/// What may be used; what is absent does not limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Millionths of a dollar. Calls of unknown price cannot be counted against it, and are said to be there.
    pub micro_usd: Option<u64>,
}

/// The budgets above those of a single job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budgets {
    /// Of one task, over all its attempts.
    pub task: Allowance,
    /// Of one build.
    pub build: Allowance,
    /// Of everything that the project ever does.
    pub project: Allowance,
    /// Of one day, UTC.
    pub day: Allowance,
}

/// A budget that is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetOverrun {
    /// What it covers: `task/<build>/<task>`, `build/<build>`, `project` or `day/<date>`.
    pub scope: String,
    /// The limit, raises included.
    pub limit: String,
    /// What was used.
    pub used: String,
}

/// A step of the ladder.
struct Rung {
    scope: String,
    allowance: Allowance,
    /// Whose calls count against it.
    whose: Query,
    /// From when on they do; none where all do.
    from: Option<DateTime<Utc>>,
}

impl Rung {
    /// Selects the calls that count against it.
    fn calls(&self) -> Query {
        let whose = self.whose.clone();
        match self.from {
            Some(from) => whose.at_least("at", from),
            None => whose,
        }
    }
}

/// Climbs the ladder; returns the first budget that is used up.
pub(crate) async fn first_exceeded(
    store: &Store,
    clock: &Clock,
    budgets: &Budgets,
    scope: &UsageScope,
) -> Result<Option<BudgetOverrun>, ReadError> {
    for rung in rungs(budgets, scope, clock.now()) {
        if rung.allowance == Allowance::default() {
            continue;
        }
        let spending = store.spending(rung.calls()).await?;
        if exceeded(&rung.scope, rung.allowance, &spending).is_none() {
            continue;
        }
        // People may have raised it for this build.
        let allowed = raises(store, scope).await?;
        let allowance = raised(rung.allowance, &rung.scope, &allowed);
        if let Some(exceeded) = exceeded(&rung.scope, allowance, &spending) {
            return Ok(Some(exceeded));
        }
    }
    Ok(None)
}

/// Says what each step of the ladder left at a time, in words for a model.
pub(crate) async fn left(
    store: &Store,
    budgets: &Budgets,
    scope: &UsageScope,
    at: DateTime<Utc>,
) -> Result<Vec<String>, ReadError> {
    let mut lines = Vec::new();
    let raises = raises(store, scope).await?;
    for rung in rungs(budgets, scope, at) {
        if rung.allowance == Allowance::default() {
            continue;
        }
        let allowance = raised(rung.allowance, &rung.scope, &raises);
        let since = rung.whose.clone().at_least("at", at);
        let spending = without(
            &store.spending(rung.calls()).await?,
            &store.spending(since).await?,
        );
        lines.extend(remaining(&rung.scope, allowance, &spending));
    }
    Ok(lines)
}

fn without(all: &Spending, since: &Spending) -> Spending {
    Spending {
        calls: all.calls.saturating_sub(since.calls),
        tokens: all.tokens.saturating_sub(since.tokens),
        known_micro_usd: all.known_micro_usd.saturating_sub(since.known_micro_usd),
        unpriced_calls: all.unpriced_calls.saturating_sub(since.unpriced_calls),
    }
}

/// What a step leaves: `12000 tokens and $1.50 for this task`.
fn remaining(scope: &str, allowance: Allowance, spending: &Spending) -> Option<String> {
    let tokens = allowance
        .tokens
        .map(|limit| format!("{} tokens", limit.saturating_sub(spending.tokens)));
    let money = allowance
        .micro_usd
        .map(|limit| dollars(limit.saturating_sub(spending.known_micro_usd)));
    let both: Vec<String> = tokens.into_iter().chain(money).collect();
    let whose = match scope.split('/').next() {
        Some("task") => "this task",
        Some("build") => "the whole build",
        Some("day") => "today",
        _ => "the project",
    };
    (!both.is_empty()).then(|| format!("{} for {whose}", both.join(" and ")))
}

async fn raises(store: &Store, scope: &UsageScope) -> Result<Vec<Raise>, ReadError> {
    let Some(build) = scope.build else {
        return Ok(Vec::new());
    };
    let build = store.get::<Build>(&build.to_string()).await?;
    Ok(build.map_or_else(Vec::new, |build| build.record.raises))
}

fn rungs(budgets: &Budgets, scope: &UsageScope, now: DateTime<Utc>) -> Vec<Rung> {
    let mut rungs = Vec::new();
    if let Some(build) = scope.build {
        let of_build = Query::new().equal("build", build.to_string());
        if let Some(task) = &scope.task {
            rungs.push(Rung {
                scope: format!("task/{build}/{task}"),
                allowance: budgets.task,
                whose: of_build.clone().equal("task", task.as_str()),
                from: None,
            });
        }
        rungs.push(Rung {
            scope: format!("build/{build}"),
            allowance: budgets.build,
            whose: of_build,
            from: None,
        });
    }
    rungs.push(Rung {
        scope: "project".to_owned(),
        allowance: budgets.project,
        whose: Query::new(),
        from: None,
    });
    let today = now.date_naive();
    rungs.push(Rung {
        scope: format!("day/{today}"),
        allowance: budgets.day,
        whose: Query::new(),
        from: Some(today.and_time(NaiveTime::MIN).and_utc()),
    });
    rungs
}

fn raised(allowance: Allowance, scope: &str, raises: &[Raise]) -> Allowance {
    let own = || raises.iter().filter(|raise| raise.scope == scope);
    let tokens: u64 = own().map(|raise| raise.tokens).sum();
    let micro_usd: u64 = own().map(|raise| raise.micro_usd).sum();
    Allowance {
        tokens: allowance.tokens.map(|limit| limit.saturating_add(tokens)),
        micro_usd: allowance
            .micro_usd
            .map(|limit| limit.saturating_add(micro_usd)),
    }
}

fn exceeded(scope: &str, allowance: Allowance, spending: &Spending) -> Option<BudgetOverrun> {
    let (used, limit) = match (allowance.tokens, allowance.micro_usd) {
        (Some(limit), _) if spending.tokens >= limit => (
            format!("{} tokens", spending.tokens),
            format!("{limit} tokens"),
        ),
        (_, Some(limit)) if spending.known_micro_usd >= limit => (spending.money(), dollars(limit)),
        _ => return None,
    };
    Some(BudgetOverrun {
        scope: scope.to_owned(),
        limit,
        used,
    })
}

fn dollars(micro_usd: u64) -> String {
    Spending {
        known_micro_usd: micro_usd,
        ..Spending::default()
    }
    .money()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(tokens: u64, known_micro_usd: u64, unpriced_calls: u64) -> Spending {
        Spending {
            calls: 3,
            tokens,
            known_micro_usd,
            unpriced_calls,
        }
    }

    #[test]
    fn a_budget_is_used_up_at_its_limit_in_tokens_or_in_money() {
        let both = Allowance {
            tokens: Some(100),
            micro_usd: Some(2_000_000),
        };
        let rows = [
            (spent(99, 1_999_999, 0), None),
            (spent(100, 0, 0), Some(("100 tokens", "100 tokens"))),
            (spent(5, 2_500_000, 0), Some(("$2.50", "$2.00"))),
            (spent(5, 2_500_000, 1), Some(("at least $2.50", "$2.00"))),
            (spent(5, 0, 3), None),
        ];
        for (spending, expected) in rows {
            let found = exceeded("project", both, &spending);
            let found = found
                .as_ref()
                .map(|found| (found.used.as_str(), found.limit.as_str()));
            assert_eq!(found, expected, "{spending:?}");
        }
        assert_eq!(exceeded("day", Allowance::default(), &spent(9, 9, 0)), None);
    }

    #[test]
    fn what_is_left_is_told_of_what_limits() {
        let both = Allowance {
            tokens: Some(100),
            micro_usd: Some(2_000_000),
        };
        let rows = [
            (
                "task/b/T-1",
                both,
                Some("58 tokens and $1.50 for this task"),
            ),
            (
                "project",
                Allowance {
                    tokens: None,
                    ..both
                },
                Some("$1.50 for the project"),
            ),
            ("build/b", Allowance::default(), None),
        ];
        for (scope, allowance, expected) in rows {
            let found = remaining(scope, allowance, &spent(42, 500_000, 0));
            assert_eq!(found.as_deref(), expected, "{scope}");
        }
        let over = remaining("day/2026-01-01", both, &spent(500, 9_000_000, 0));
        assert_eq!(over.as_deref(), Some("0 tokens and $0.00 for today"));
    }

    #[test]
    fn a_raise_counts_for_its_own_scope_alone() {
        let allowance = Allowance {
            tokens: Some(100),
            micro_usd: None,
        };
        let raise = |scope: &str| Raise {
            scope: scope.to_owned(),
            tokens: 50,
            micro_usd: 7,
            by: "ada".to_owned(),
        };
        let raises = [raise("project"), raise("project"), raise("day/2026-01-01")];
        let more = raised(allowance, "project", &raises);
        assert_eq!((more.tokens, more.micro_usd), (Some(200), None));
        assert_eq!(raised(allowance, "build/x", &raises), allowance);
    }
}
