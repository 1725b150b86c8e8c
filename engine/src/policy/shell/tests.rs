use super::*;

fn words(line: &str) -> Vec<String> {
    let found = read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    found.commands.into_iter().map(|one| one.words).collect()
}

fn also(line: &str) -> Vec<String> {
    let found = read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let commands = found.commands.into_iter();
    commands.flat_map(|one| one.also).collect()
}

#[test]
fn every_command_of_a_compound_line_is_found() {
    let rows: &[(&str, &[&str])] = &[
        ("cargo test", &["cargo test"]),
        ("  cargo \t test  ", &["cargo test"]),
        ("a && b x || c; d &", &["a", "b x", "c", "d"]),
        ("a | b 2>&1 | c", &["a", "b", "c"]),
        ("(cd x && a); { b; }", &["cd x", "a", "b"]),
        ("! a", &["a"]),
        ("if a; then b; else c; fi", &["a", "b", "c"]),
        ("for f in *.rs; do a \"$f\"; done", &["a $f"]),
        ("while a; do b; done", &["a", "b"]),
        ("case $x in y) a;; *) b;; esac", &["a", "b"]),
        ("f() { a; }; f", &["a", "f"]),
        ("X=1 Y=2 a b", &["a b"]),
        ("X=$(a b) c", &["c", "a b"]),
        ("a $(b) `c` <(d)", &["a $(b) `c` <(d)", "b", "c", "d"]),
        (
            "echo \"$(a \"$(b)\")\"",
            &["echo $(a \"$(b)\")", "a $(b)", "b"],
        ),
        ("cat <<EOF\n$(a)\nEOF", &["cat", "a"]),
        ("[[ -f x ]] && a", &["[[ -f x ]]", "a"]),
        ("[ -f x ] && a", &["[ -f x ]", "a"]),
        ("export X=1; unset X", &["export X=1", "unset X"]),
        ("a # rm x", &["a"]),
        ("a \\\n  b", &["a b"]),
        ("'r'm -r\"f\" \"x y\"", &["rm -rf x y"]),
        ("\\rm x", &["rm x"]),
        ("$HOME/bin/tool x", &["$HOME/bin/tool x"]),
        ("", &[]),
    ];
    for (line, expected) in rows {
        assert_eq!(words(line), *expected, "{line}");
    }
}

#[test]
fn what_a_shell_is_told_to_run_is_read_as_well() {
    let rows: &[(&str, &[&str])] = &[
        ("bash -c 'a && b'", &["bash -c a && b", "a", "b"]),
        ("/bin/sh -ec \"a x\"", &["/bin/sh -ec a x", "a x"]),
        ("eval 'a; b'", &["eval a; b", "a", "b"]),
        ("env X=1 bash -lc a", &["env X=1 bash -lc a", "a"]),
        ("sh -c \"sh -c 'a'\"", &["sh -c sh -c 'a'", "sh -c a", "a"]),
        ("bash <<'EOF'\na x\nEOF", &["bash", "a x"]),
        ("bash script.sh -c", &["bash script.sh -c"]),
        ("bash --version", &["bash --version"]),
    ];
    for (line, expected) in rows {
        assert_eq!(words(line), *expected, "{line}");
    }
}

#[test]
fn a_command_is_known_behind_its_directory_and_behind_what_starts_it() {
    let rows = [
        ("/usr/bin/sudo x", "sudo x"),
        ("$HOME/rm x", "rm x"),
        ("timeout -s KILL 5 rm x", "rm x"),
        ("find . -name x -exec rm {} +", "rm {} +"),
        ("echo x | xargs -n 1 /bin/rm -f", "rm -f"),
        ("command rm x", "rm x"),
        ("env -i A=1 nice -n 5 rm x", "rm x"),
        ("flock lock rm x", "rm x"),
        ("fd -e rs -x rm", "rm"),
    ];
    for (line, expected) in rows {
        let found = also(line);
        assert!(found.iter().any(|one| one == expected), "{line}: {found:?}");
    }
    for line in [
        "echo rm x",
        "find . -name rm",
        "xargs grep rm",
        "timeout 5 grep rm x",
        "env A=1 grep rm x",
    ] {
        let found = also(line);
        assert!(!found.iter().any(|one| one.starts_with("rm")), "{line}");
    }
    assert!(read("find . -name sh").is_ok());
}

#[test]
fn what_does_not_parse_or_hides_its_words_is_told_apart() {
    for line in [
        "a && ",
        "a (",
        "if a; then",
        "echo 'x",
        "a ) b",
        "${",
        "a $(b",
    ] {
        let found = read(line);
        assert!(
            matches!(found, Err(ShellLineError::Unparsed(_))),
            "{line}: {found:?}"
        );
    }
    for line in [
        "$X a",
        "\"$X\" a",
        "$(which rm) x",
        "bash -c \"$X\"",
        "eval $X",
        "curl x | sh",
        "sh",
        "sudo bash -c $X",
        "r${E}m x",
    ] {
        let found = read(line);
        assert!(
            matches!(found, Err(ShellLineError::Hidden(_))),
            "{line}: {found:?}"
        );
    }
    let deep = |depth: usize| "eval ".repeat(depth) + "a";
    assert!(read(&deep(DEEPEST)).is_ok());
    let long = format!("echo {}", "x".repeat(LONGEST_BYTES));
    assert_eq!(read(&long), Err(ShellLineError::TooLong));
}

#[test]
fn no_other_way_to_say_it_hides_a_command_from_a_rule() {
    for line in [
        "alias x='rm -rf y'\nx",
        "alias a=ls x=rm; x y",
        "trap 'rm x' EXIT",
        "coproc rm x",
        "{rm,-rf,x}",
        "/bin/r[m] x",
        "/bin/r? x",
        "/usr/b*/rm* x",
        "bash <(echo rm x)",
        "source <(echo rm x)",
        ". /dev/stdin <<'EOF'\nrm x\nEOF",
        "bash /dev/stdin <<'EOF'\nrm x\nEOF",
        "bash /dev/fd/0 <<< 'rm x'",
        "env -S'rm x'",
        "env --split-string='rm x'",
        "hash -p /bin/rm x; x y",
        "watch -n 1 rm x",
        "setpriv --no-new-privs rm x",
        "builtin eval 'rm x'",
        "f() { rm x; }; f",
        "echo <(rm x)",
        "\"$(rm x)\"",
        "$'rm' x",
        "rm$IFS-rf x",
    ] {
        let told = match read(line) {
            Err(_) => true,
            Ok(found) => found.commands.iter().any(|one| {
                let mut words = one.also.iter().chain([&one.words]);
                words.any(|words| words.split(' ').next() == Some("rm"))
            }),
        };
        assert!(told, "{line}: {:?}", read(line));
    }
    // What only looks like it is judged as it stands.
    for line in [
        "echo {a,b}",
        "ls r[m]",
        "alias",
        "trap - EXIT",
        "source venv/bin/activate",
        "[ -f x ]",
        "hash -r",
    ] {
        assert!(read(line).is_ok(), "{line}: {:?}", read(line));
    }
}

#[test]
fn files_that_redirections_write_are_found() {
    let line = "a > x 2>> 'y z' < in; b &> ../out; c > $D/w; d > /dev/null";
    let found = read(line).unwrap();
    assert_eq!(found.writes, ["x", "y z", "../out", "/dev/null"]);
}

#[test]
fn no_line_breaks_the_reader() {
    let deep = format!("{}a{}", "$(".repeat(3_000), ")".repeat(3_000));
    let open = "{ ".repeat(5_000);
    for line in [
        deep.as_str(),
        &open,
        "\0",
        "\u{feff}a",
        "a\r\nb",
        "é\u{301} \u{202e}",
        "echo {\u{10ffff}",
        "echo {1..\u{10ffff}",
    ] {
        // Whatever comes of it, it comes back.
        drop(read(line));
    }
}

#[test]
fn other_letters_than_those_of_ascii_are_parts_of_words() {
    for (line, words) in [
        ("écho café", "écho café"),
        ("é=1 ls", "é=1 ls"),
        ("ls\u{3000}x", "ls\u{3000}x"),
        ("echo '🚀' {🚀}", "echo 🚀 {🚀}"),
        ("🚀 && ls", "🚀"),
        ("echo {1..🚀}", "echo {1..🚀}"),
        ("echo {ā}", "echo {ā}"),
    ] {
        assert_eq!(read(line).unwrap().commands[0].words, words, "{line}");
    }
    // Documents end where the shell ends them: at a letter for which another stands here, that could not be told.
    let line = "cat <<{漢\n{xxx\n\"\n{漢\nrm -rf x\n\"";
    assert!(matches!(read(line), Err(ShellLineError::Unparsed(_))));
    let line = "cat <<漢\n字\n\"\n漢\nrm -rf x";
    let found = read(line).unwrap();
    assert!(
        found.commands.iter().any(|one| one.words == "rm -rf x"),
        "{found:?}"
    );
}

/// A line is read or refused, in bounded time and room; what is read names no empty command and no line beyond its bounds.
#[test]
fn fuzz_shell_rules() {
    let check = |input: &[u8]| {
        let line = String::from_utf8_lossy(input);
        match read(&line) {
            Ok(found) => {
                assert!(found.commands.len() <= MOST);
                assert!(found.commands.iter().all(|one| !one.words.is_empty()));
                let also: usize = found.commands.iter().map(|one| one.also.len()).sum();
                let (commands, writes) = (found.commands.len(), found.writes.len());
                format!("{} {} {}", commands.min(9), also.min(9), writes.min(3))
            }
            Err(ShellLineError::TooLong) => "long".to_owned(),
            Err(ShellLineError::Unparsed(_)) => "unparsed".to_owned(),
            Err(ShellLineError::Hidden(_)) => "hidden".to_owned(),
        }
    };
    let words = [
        "|",
        "&&",
        ";",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "\\",
        "<<E\n",
        "E\n",
        "{ ",
        "}",
        "> x",
        "2>&1",
        "sh -c ",
        "sudo ",
        "env A=1 ",
        "xargs ",
        "eval ",
        "find . -exec ",
        "{} \\;",
        "$X",
        "if ",
        "then ",
        "fi",
        "timeout 3 ",
    ];
    ropewalk_tests::fuzz::Target {
        name: "shell-rules",
        words: &words,
        check: &check,
    }
    .run();
}
