use super::{Reader, Recipes};

const MAKEFILE: &str = "PYTHON = python3\nPY := $(PYTHON) -B\nOUT = out\n\n.PHONY: test\nall: build\n\ntest: prepare\nifdef CI\n\t$(PY) run.py\nendif\n\nprepare:\n\tmkdir -p out\n\nbuild:\n\tcc -o $(OUT) app.c\n\nunit-%:\n\tpython3 $*.py\n";

#[test]
fn whatever_decides_what_a_target_does_is_a_part_of_it() {
    let with = |line: &str| format!("{line}\n{MAKEFILE}");
    let made = |from: &str, to: &str| MAKEFILE.replace(from, to);
    let rows = [
        ("test", with("SHELL := /bin/true"), true),
        ("test", with("override SHELL := /bin/true"), true),
        ("test", with("\tSHELL = /bin/true"), true),
        ("test", with("SHELL \\\n= /bin/true"), true),
        ("test", with("export PATH := ./bin:$(PATH)"), true),
        ("test", with("PATH = ./bin"), true),
        ("test", with("export NODE_OPTIONS = -r ./a.js"), true),
        ("test", with("export OUT"), true),
        ("test", with("MAKEFLAGS += -n"), true),
        ("test", with("GNUMAKEFLAGS = -i"), true),
        ("test", with(".IGNORE:"), true),
        ("test", with(".IGNORE: test"), true),
        ("test", with(".ONESHELL:"), true),
        ("test", with("$(eval SHELL := /bin/true)"), true),
        ("test", with("X := $(eval SHELL := /bin/true)"), true),
        ("test", with("X := $(shell rm run.py)"), true),
        ("test", with("$(NAME)LL := /bin/true"), true),
        ("test", with("include other.mk"), true),
        ("test", with("-include other.mk"), true),
        ("test", with("define SHELL\n/bin/true\nendef"), true),
        ("test", with("%: PY = true"), true),
        (
            "test",
            made("test: prepare", "test: PY = true\ntest: prepare"),
            true,
        ),
        ("test", made("\t$(PY)", "\t-$(PY)"), true),
        ("test", made("\t$(PY) run.py", "\ttrue"), true),
        ("test", made("python3 -B", "true"), false),
        ("test", made("PYTHON = python3", "PYTHON = true"), true),
        ("test", made(".PHONY: test", ".PHONY: all"), true),
        ("unit-a", made("python3 $*.py", "true"), true),
        ("", with(".DEFAULT_GOAL := prepare"), true),
        // What decides about others.
        ("test", made("cc -o", "cc -O2 -o"), false),
        ("test", made("OUT = out", "OUT = app"), false),
        ("test", with("SOURCES = a.c \\\n  b.c"), false),
        ("test", with("export_dir = out"), false),
        ("test", made(".PHONY: test", ".PHONY: test all"), false),
        (
            "test",
            made("build:\n", "build:\nifdef DEBUG\n\techo\nendif\n"),
            false,
        ),
    ];
    for (name, after, expected) in rows {
        let text = |content: &str| Recipes::read(content, Reader::Make).text(name);
        assert_eq!(text(MAKEFILE) != text(&after), expected, "{name}: {after}");
    }
}

#[test]
fn whatever_decides_what_a_recipe_does_is_a_part_of_it() {
    let justfile = "python := 'python3'\n\n[private]\ntest: (prepare 'a')\n    {{python}} run.py\n\nprepare what:\n    mkdir {{what}}\n\nbuild:\n    cc app.c\n";
    let with = |line: &str| format!("{line}\n{justfile}");
    let made = |from: &str, to: &str| justfile.replace(from, to);
    let rows = [
        (with("set shell := ['true']"), true),
        (with("export PATH := './bin'"), true),
        (with("x := `rm run.py`"), true),
        (with("import 'other.just'"), true),
        (made("'python3'", "'true'"), true),
        (made("mkdir", "true"), true),
        (made("cc app.c", "cc -O2 app.c"), false),
        (with("out := 'out'"), false),
    ];
    for (after, expected) in rows {
        let text = |content: &str| Recipes::read(content, Reader::Just).text("test");
        assert_eq!(text(justfile) != text(&after), expected, "{after}");
    }
}

#[test]
fn files_that_are_read_as_parts_are_named() {
    let file = "DIR = mk\ninclude $(DIR)/a.mk b.mk # both\n-include c.mk\n";
    let included = Recipes::read(file, Reader::Make).included();
    assert_eq!(included, ["mk/a.mk", "b.mk", "c.mk"]);
    let file = "import? 'a.just'\n";
    assert_eq!(Recipes::read(file, Reader::Just).included(), ["a.just"]);
}

#[test]
fn a_target_that_needs_nothing_is_done_by_a_file_of_its_name() {
    let rows = [
        ("test:\n\t./run\n", "test", true),
        ("test: | out\n\t./run\n", "", true),
        ("test: out\n\t./run\n", "test", false),
        ("test::\n\t./run\n", "test", false),
        (".PHONY: test\ntest:\n\t./run\n", "test", false),
        ("build:\n\tcc\n", "test", false),
    ];
    for (file, name, expected) in rows {
        let done = Recipes::read(file, Reader::Make).done_by_file(name);
        assert_eq!(done.is_some(), expected, "{file}");
    }
}
