//! Holds the workspace to its design: arrows, owners, sizes and files that nobody compiles.
//!
//! Each rule is a pure function over the text of manifests and sources, which its own module tries
//! on a planted violation; the tests here apply them to the whole workspace.

mod arrows;
mod callers;
mod capabilities;
mod columns;
mod cycles;
mod decisions;
mod dependencies;
mod forgotten;
mod manifest;
mod nouns;
mod over_http;
mod owners;
mod scenarios;
mod sizes;
mod sources;
mod subscribers;
mod triggers;
mod visits;
mod workspace;

use anyhow::{Result, ensure};
use ropewalk_tests::routes;

use crate::workspace::{Member, Workspace};

/// Applies a rule to every member and fails with all it found.
fn check_members(rule: impl Fn(&Member) -> Result<Vec<String>>) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut violations = Vec::new();
    for member in &workspace.members {
        violations.extend(rule(member)?);
    }
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

/// Applies a rule to every source file and fails with all it found.
fn check_files(rule: impl Fn(&str, &str) -> Result<Vec<String>>) -> Result<()> {
    check_members(|member| {
        let mut violations = Vec::new();
        for (path, text) in &member.files {
            violations.extend(rule(&format!("{}/{path}", member.directory), text)?);
        }
        Ok(violations)
    })
}

#[test]
fn arrows_point_only_up() -> Result<()> {
    check_members(|member| Ok(arrows::violations(member.name(), &member.manifest)))
}

#[test]
fn a_heavy_dependency_has_one_owner() -> Result<()> {
    check_members(|member| Ok(owners::violations(member.name(), &member.manifest)))
}

#[test]
fn cargo_deny_is_told_the_same_owners() -> Result<()> {
    let violations = owners::disagreements(&Workspace::load()?.deny)?;
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn every_member_takes_the_lints_of_the_workspace() -> Result<()> {
    check_members(|member| Ok(dependencies::own_lints(&member.directory, &member.manifest)))
}

#[test]
fn every_declared_dependency_is_used() -> Result<()> {
    check_members(dependencies::unused)?;
    let workspace = Workspace::load()?;
    let violations = dependencies::taken_by_nobody(&workspace.shared, &workspace.members);
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn every_source_file_is_compiled() -> Result<()> {
    check_members(forgotten::violations)
}

#[test]
fn every_crate_says_what_it_is() -> Result<()> {
    check_files(|path, text| Ok(sources::without_crate_doc(path, text)))
}

#[test]
fn no_file_is_called_mod() -> Result<()> {
    check_files(|path, _| Ok(sources::called_mod(path)))
}

#[test]
fn nothing_is_left_to_do_and_no_test_is_ignored() -> Result<()> {
    check_files(sources::unfinished)
}

#[test]
fn handlers_of_builds_leave_git_and_gate_to_the_scheduler() -> Result<()> {
    check_files(sources::slow_handlers)
}

#[test]
fn what_leads_back_to_itself_is_called_a_cycle() -> Result<()> {
    check_files(|path, text| Ok(sources::rings(path, text)))?;
    let texts = Workspace::load()?.texts;
    let texts = texts.iter();
    let violations = texts.flat_map(|(path, text)| sources::rings(path, text));
    let violations: Vec<String> = violations.collect();
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn effects_of_a_transition_are_stored_by_whoever_makes_it() -> Result<()> {
    check_files(sources::lost_effects)
}

#[test]
fn files_stay_small() -> Result<()> {
    check_files(sizes::long_file)
}

#[test]
fn folders_stay_small() -> Result<()> {
    check_members(|member| Ok(sizes::crowded_folders(member)))
}

#[test]
fn functions_stay_small() -> Result<()> {
    check_files(sizes::long_functions)
}

#[test]
fn no_crate_outgrows_the_others() -> Result<()> {
    let workspace = Workspace::load()?;
    let mut crates = Vec::new();
    for member in &workspace.members {
        crates.push((member.name().to_owned(), sizes::crate_lines(member)?));
    }
    let violations = sizes::heavy_crates(&crates);
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn no_module_leads_back_to_itself() -> Result<()> {
    check_members(cycles::violations)
}

#[test]
fn every_scenario_line_names_tests_that_exist() -> Result<()> {
    let workspace = Workspace::load()?;
    let tests = scenarios::tests(&workspace.members)?;
    let violations = scenarios::violations(&workspace.scenarios, &tests);
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn every_capability_and_expectation_names_its_tests_or_what_it_waits_for() -> Result<()> {
    let workspace = Workspace::load()?;
    let tests = scenarios::tests(&workspace.members)?;
    let over_http = over_http::tests(&workspace.members)?;
    let abilities = capabilities::Page {
        text: &workspace.capabilities,
        rows: capabilities::CAPABILITIES,
        over_http: Some(&over_http),
    };
    let wishes = capabilities::Page {
        text: &workspace.expectations,
        rows: capabilities::EXPECTATIONS,
        over_http: None,
    };
    let mut violations = over_http::violations(&workspace.members);
    violations.extend(capabilities::violations(&abilities, &tests));
    violations.extend(capabilities::violations(&wishes, &tests));
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn every_scenario_has_a_row_or_awaits_work_that_is_named() -> Result<()> {
    let violations = scenarios::missing(&Workspace::load()?.scenarios);
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn types_are_named_by_nouns() -> Result<()> {
    check_files(nouns::violations)
}

#[test]
fn no_two_errors_have_one_name() -> Result<()> {
    let workspace = Workspace::load()?;
    let files = workspace.members.iter().flat_map(|member| {
        let files = member.files.iter();
        files.map(move |(path, text)| (format!("{}/{path}", member.directory), text.as_str()))
    });
    let violations = nouns::twin_errors(files)?;
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn every_column_that_a_query_names_is_one_of_a_record() -> Result<()> {
    let violations = columns::violations(&Workspace::load()?.members)?;
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn every_trigger_has_an_asker_or_awaits_work_that_is_named() -> Result<()> {
    let violations = triggers::violations(&Workspace::load()?.members);
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn every_public_function_has_a_caller_beside_the_tests() -> Result<()> {
    let violations = callers::violations(&Workspace::load()?.members)?;
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn decisions_read_no_words_for_people() -> Result<()> {
    check_files(decisions::violations)
}

#[test]
fn every_event_is_taken_by_those_that_it_is_meant_for() -> Result<()> {
    let violations = subscribers::violations(&Workspace::load()?.members)?;
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn every_page_is_visited_by_a_browser_with_and_without_a_script() -> Result<()> {
    let workspace = Workspace::load()?;
    let violations = visits::violations(&routes::shown()?, &workspace.visits, &workspace.walks)?;
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}

#[test]
fn the_figures_of_every_page_are_compared_with_the_store() -> Result<()> {
    let workspace = Workspace::load()?;
    let members = workspace.members.iter();
    let files = members.filter(|member| member.directory == "server");
    let files = files.flat_map(|member| &member.files);
    let tests = files.filter(|(path, _)| path.starts_with("tests/http/figures"));
    let tests: Vec<&str> = tests.map(|(_, text)| text.as_str()).collect();
    let violations = visits::unread(&routes::shown()?, &workspace.visits, &tests)?;
    ensure!(violations.is_empty(), "\n{}", violations.join("\n"));
    Ok(())
}
