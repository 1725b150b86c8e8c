//! Finds the build that somebody means: by its idea or its branch, and by what can be done with it.

use ropewalk_desk::views::specification;
use ropewalk_schemas::Slug;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::specification::SpecState;
use ropewalk_store::{Query, ReadError, Store, Versioned};

use crate::commands::SAID_BACK;
use crate::keyboard;
use crate::orders::naming;
use crate::surface::Answer;

/// How many builds are shown of those that could be meant, the newest.
const SHOWN: usize = 8;

/// All builds there are, the oldest first.
pub(crate) struct BuildRoll(Vec<Build>);

/// Which of some builds can do what is wished.
pub(super) enum BuildChoice<'a> {
    /// This one alone.
    One(&'a Build),
    /// These.
    Several(Vec<&'a Build>),
    /// None.
    Nothing,
}

impl BuildRoll {
    /// Reads them.
    pub(crate) async fn load(store: &Store) -> Result<Self, ReadError> {
        let builds = store.list::<Build>(Query::new().order_by("created_at"));
        let builds = builds.await?.into_iter();
        Ok(Self(builds.map(Versioned::into_inner).collect()))
    }

    /// Returns how people are told of a build: by its idea, and by its branch too where the idea has several.
    pub(crate) fn name(&self, build: &Build) -> String {
        let idea = &build.idea;
        let of_idea = self.0.iter().filter(|other| other.idea == *idea);
        if of_idea.count() > 1 {
            format!("`{idea}` on `{}`", build.branch)
        } else {
            format!("`{idea}`")
        }
    }

    /// Puts the branches of builds in the place of their ids, which nobody knows on a phone.
    pub(crate) fn without_ids(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for build in &self.0 {
            let id = build.id.to_string();
            if text.contains(&id) {
                let branch = format!("`{}`", build.branch);
                for written in [format!("build `{id}`"), format!("build {id}"), id] {
                    text = text.replace(&written, &branch);
                }
            }
        }
        text
    }

    /// Lists all of them.
    pub(super) fn all(&self) -> Vec<&Build> {
        self.0.iter().collect()
    }

    /// Lists those that a word names: those of an idea, or those of a branch or an id.
    pub(super) fn called(&self, word: &str) -> Vec<&Build> {
        let builds = self.0.iter();
        let of_idea: Vec<&Build> = builds.filter(|build| build.idea.as_str() == word).collect();
        if !of_idea.is_empty() || word.is_empty() {
            return of_idea;
        }
        let ends = format!("/{word}");
        let is_it = |build: &&Build| {
            build.branch == word || build.branch.ends_with(&ends) || build.id.to_string() == word
        };
        self.0.iter().filter(is_it).collect()
    }

    /// Lists those that a text names, all of them where it names nothing; where there is none, says why.
    pub(super) async fn meant(
        &self,
        store: &Store,
        named: &str,
    ) -> Result<Result<Vec<&Build>, String>, ReadError> {
        if named.is_empty() {
            return Ok(Ok(self.all()));
        }
        let called = self.called(named);
        if !called.is_empty() {
            return Ok(Ok(called));
        }
        let ideas = naming::find(store, named).await?;
        if ideas.len() > 1 {
            return Ok(Err(naming::fits_several(named, &ideas)));
        }
        let idea = ideas.first().map_or(named, Slug::as_str);
        let called = self.called(idea);
        if !called.is_empty() {
            return Ok(Ok(called));
        }
        let told = unapproved(store, idea).await?;
        Ok(Err(told.unwrap_or_else(|| none_of(idea))))
    }

    /// Asks which of several builds is meant, by their branches; where `verb` needs nothing more, a button does it.
    pub(super) fn which(verb: &str, several: &[&Build], needs_more: bool) -> Answer {
        let newest: Vec<&&Build> = several.iter().rev().take(SHOWN).collect();
        let line = |build: &&&Build| {
            let Build {
                idea,
                branch,
                state,
                ..
            } = **build;
            format!("• `{idea}` on `{branch}`: {state}")
        };
        let lines: Vec<String> = newest.iter().map(line).collect();
        let example = newest.first().map_or("", |build| build.branch.as_str());
        let how = if needs_more {
            "Name"
        } else {
            "Press the one that you mean, or name"
        };
        let buttons = newest.iter().filter(|_| !needs_more).filter_map(|build| {
            let label = format!("{} ({})", build.branch, build.state);
            keyboard::typing(label, &format!("{verb} {}", build.id))
        });
        let asks = match several {
            [_] => "One build could be meant",
            _ => "Several builds could be meant",
        };
        Answer {
            text: format!(
                "{asks}. {how} its branch, such as `{verb} {example}`:\n{}",
                lines.join("\n")
            ),
            buttons: buttons.collect(),
        }
    }
}

/// Finds those of `builds` that can do what is wished.
pub(super) fn choose<'a>(builds: &[&'a Build], can: impl Fn(&Build) -> bool) -> BuildChoice<'a> {
    let able: Vec<&Build> = builds.iter().copied().filter(|build| can(build)).collect();
    match able.as_slice() {
        [] => BuildChoice::Nothing,
        [one] => BuildChoice::One(one),
        _ => BuildChoice::Several(able),
    }
}

/// Says that nothing of an idea that somebody named is built: there is none such, or its specification is not approved.
pub(super) async fn unbuilt(store: &Store, named: &str) -> Result<Option<String>, ReadError> {
    if let Some(told) = unapproved(store, named).await? {
        return Ok(Some(told));
    }
    let idea = store.get::<Idea>(named).await?;
    Ok(idea.map(|_| none_of(named)))
}

/// Says that an idea has no build since its specification is not approved, where that is so.
async fn unapproved(store: &Store, named: &str) -> Result<Option<String>, ReadError> {
    let Ok(idea) = Slug::parse(named) else {
        return Ok(None);
    };
    let newest = specification::list(store, Some(&idea)).await?;
    let Some(newest) = newest.last() else {
        return Ok(None);
    };
    let next = match newest.specification.state {
        SpecState::Approved => return Ok(None),
        SpecState::Draft => {
            "it is being written, and you are asked before anything is built".into()
        }
        SpecState::Generated => {
            format!("/execute {idea} shows what its build comes to, and starts it")
        }
        SpecState::Rejected => format!("it was rejected, and /execute {idea} asks for another one"),
    };
    Ok(Some(format!(
        "The specification of `{idea}` is not approved; {next}."
    )))
}

fn none_of(named: &str) -> String {
    let named = clip::letters(named, SAID_BACK);
    format!("There is no build of `{named}`; /ideas lists the ideas.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Two builds of one idea, and one of another.
    fn roll() -> BuildRoll {
        let of = |(number, idea, branch): (u32, &str, &str)| -> Build {
            let id = format!("00000000-0000-7000-8000-{number:012}");
            let build = json!({
                "id": id, "spec": id, "revision": 1, "hash": "0".repeat(64), "idea": idea, "user": "ada",
                "state": "running", "pause_requested": false, "branch": branch, "target": "main", "priority": 5,
                "working_ms": 0, "correlation_id": id, "created_at": "2026-03-01T08:00:00Z",
            });
            serde_json::from_value(build).unwrap()
        };
        let builds = [
            (1, "walks", "build/walks"),
            (2, "walks", "build/walks-2"),
            (3, "rivers", "build/rivers"),
        ];
        BuildRoll(builds.map(of).into())
    }

    #[test]
    fn a_build_is_named_by_its_idea_its_branch_or_its_id() {
        let roll = roll();
        let second = roll.0[1].id.to_string();
        for (word, expected) in [
            ("walks", &[0, 1][..]),
            ("rivers", &[2]),
            ("build/walks-2", &[1]),
            ("walks-2", &[1]),
            (second.as_str(), &[1]),
            ("alks", &[]),
            ("", &[]),
        ] {
            let expected: Vec<&Build> = expected.iter().map(|place| &roll.0[*place]).collect();
            assert_eq!(roll.called(word), expected, "{word}");
        }
    }

    #[test]
    fn a_branch_is_told_where_the_idea_alone_names_several() {
        let roll = roll();
        let names: Vec<String> = roll.0.iter().map(|build| roll.name(build)).collect();
        let expected = [
            "`walks` on `build/walks`",
            "`walks` on `build/walks-2`",
            "`rivers`",
        ];
        assert_eq!(names, expected);
        let id = roll.0[0].id;
        for why in [
            format!("build {id} owns it"),
            format!("build `{id}` owns it"),
        ] {
            assert_eq!(roll.without_ids(&why), "`build/walks` owns it");
        }
    }

    #[test]
    fn who_may_mean_several_is_asked_which_and_presses_it() {
        let roll = roll();
        let asked = BuildRoll::which("/stop", &roll.all(), false);
        let data: Vec<&str> = asked.buttons.iter().map(|one| one.data.as_str()).collect();
        let newest_first: Vec<String> = roll
            .0
            .iter()
            .rev()
            .map(|build| format!("/stop {}:0", build.id))
            .collect();
        assert_eq!(data, newest_first);
        assert!(
            asked.text.contains("• `walks` on `build/walks-2`: running"),
            "{}",
            asked.text
        );
        assert_eq!(BuildRoll::which("/tell", &roll.all(), true).buttons, []);
        let walks = choose(&roll.called("walks"), |build| build.branch == "build/walks");
        assert!(matches!(walks, BuildChoice::One(build) if build.id == roll.0[0].id));
        assert!(
            matches!(choose(&roll.all(), |_| true), BuildChoice::Several(all) if all.len() == 3)
        );
        assert!(matches!(
            choose(&roll.all(), |_| false),
            BuildChoice::Nothing
        ));
    }
}
