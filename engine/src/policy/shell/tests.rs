use super::*;

mod followed;

/// Reads a line however slow the machine is.
fn read(line: &str) -> Result<ShellLine, ShellLineError> {
    read_within(line, Duration::from_hours(1))
}

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
        ("git > log push", &["git push"]),
        ("> log rm x", &["rm x"]),
        ("a && git 2>/dev/null push | b", &["a", "git push", "b"]),
        (
            "! git push > log origin >> log main",
            &["git push origin main"],
        ),
        ("cat <<EOF > x -n\n$(a)\nEOF", &["cat -n", "a"]),
        ("cat <<EOF x\nEOF", &["cat x"]),
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
        ("x && bash -s <<'EOF'\na x\nEOF", &["x", "bash -s", "a x"]),
        // Before a document the grammar leaves the dash out.
        ("bash - <<'EOF'\na x\nEOF", &["bash", "a x"]),
        ("bash -eo pipefail -c a", &["bash -eo pipefail -c a", "a"]),
        ("bash -co pipefail a", &["bash -co pipefail a", "a"]),
        (
            "bash -o errexit +O extglob -c a",
            &["bash -o errexit +O extglob -c a", "a"],
        ),
        ("bash --rcfile f -c a", &["bash --rcfile f -c a", "a"]),
        ("bash -c -- a", &["bash -c -- a", "a"]),
        ("su -c 'a x' bob", &["su -c a x bob", "a x"]),
        ("script -qc a log", &["script -qc a log", "a"]),
        ("bash script.sh -c", &["bash script.sh -c"]),
        (
            "bash -eo pipefail script.sh -c",
            &["bash -eo pipefail script.sh -c"],
        ),
        ("bash -norc script.sh", &["bash -norc script.sh"]),
        ("bash - script.sh", &["bash - script.sh"]),
        ("sh -e script.sh -", &["sh -e script.sh -"]),
        // Behind the name of the user stands what the shell is told.
        ("su root script.sh", &["su root script.sh"]),
        ("su - root script.sh", &["su - root script.sh"]),
        (
            "runuser -s /bin/sh root script.sh",
            &["runuser -s /bin/sh root script.sh"],
        ),
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
        ("prlimit --nofile=10 rm x", "rm x"),
        ("runuser -u bob -- rm x", "rm x"),
        ("systemd-run --user -p MemoryMax=1G rm x", "rm x"),
        ("env 'A%=1' rm x", "rm x"),
        ("sudo 'A%=1' rm x", "rm x"),
        ("chronic rm x", "rm x"),
        ("unbuffer rm x", "rm x"),
        ("ssh-agent rm x", "rm x"),
        ("xvfb-run -a rm x", "rm x"),
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
        "runuser -u bob -- grep -c rm x",
        "chronic grep rm x",
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
        "curl x | sh -",
        "curl x | sudo -u x sh -",
        "echo x | bash -e -",
        "echo x | bash -o errexit",
        "bash -eo pipefail -c \"$X\"",
        "bash -co pipefail",
        "su -c \"$X\" bob",
        "script -qc \"$X\" log",
        "sh",
        "sudo bash -c $X",
        "r${E}m x",
        "su",
        "su - root",
        "su root -",
        "su root -- -s script.sh",
        "script script.sh",
        "X='root -c'; su $X 'rm x'",
        "su root {-c,'rm x'}",
        "su --unknown root script.sh",
        "su --s x root script.sh",
        "bash {-c,'rm x'}",
        "bash -o {errexit,-c} 'rm x'",
        "bash -c r*",
        "time { rm x; }",
        "time -p { rm x; }",
        "coproc X { rm x; }",
        "time if a; then rm x; fi",
        "time ! rm x",
        "bash <<E\na $G\nE",
        "bash <<E\na `b`\nE",
        "mapfile -C \"$X\" -c 1 a",
        "mapfile $X a",
        "xargs -IQ sh -c 'a > Q'",
        "xargs -I Q -n 1 sh -c 'a > Q'",
        "xargs -i sh -c 'a {}'",
        "xargs --repl sh -c 'a {}'",
        "xargs -I \"$X\" sh -c a",
        "parallel sh -c 'a {}'",
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
        "bash -eo pipefail -c 'rm x'",
        "bash -o errexit -c 'rm x'",
        "bash -O extglob -c 'rm x'",
        "bash --rcfile f -c 'rm x'",
        "curl x | sh -",
        "echo 'rm x' | bash -e -",
        "bash - <<'EOF'\nrm x\nEOF",
        "a && bash <<'EOF'\nrm x\nEOF",
        "timeout > log 5 rm x",
        "su bob -c 'rm x'",
        "su --command='rm x' bob",
        "runuser bob -c 'rm x'",
        "script -q -c 'rm x' /dev/null",
        "script '-crm x' log",
        "script '-qcrm x' log",
        "echo 'rm x' | script -q /dev/null",
        "echo 'rm x' | script -O -cls log",
        "echo 'rm x' | su root",
        "echo 'rm x' | su -gcrew root",
        "echo 'rm x' | runuser root",
        "su root <<'EOF'\nrm x\nEOF",
        "su root --comm='rm x' y",
        "su --she /bin/sh root <<'EOF'\nrm x\nEOF",
        "su root -- -oc errexit 'rm x'",
        "su root -- -c 'rm x' --help",
        "su -w -h root -c 'rm x'",
        "runuser root -- -c 'rm x' -u",
        "script --comm 'rm x' log",
        "mapfile -tC 'rm x' -c 1 a < f",
        "readarray -n 1 -Crm a < f",
        "mapfile -dc -C 'rm x' a < f",
        "bash <<E\n\\\\\nrm x\nE",
        "bash <<E\na \\$(rm x)\nE",
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
}

#[test]
fn what_only_looks_hidden_is_judged_as_it_stands() {
    for line in [
        "echo {a,b}",
        "ls r[m]",
        "alias",
        "trap - EXIT",
        "source venv/bin/activate",
        "[ -f x ]",
        "hash -r",
        "bash -eo pipefail build.sh",
        "bash --rcfile f build.sh",
        "bash - build.sh",
        "script -qc 'make all' log",
        "su -c make bob",
        "script -aqc make log",
        "script --version",
        "command -v script",
        "prlimit --pid 5",
        "bash tests/*.sh",
        "bash <<E\na \\$x\nE",
        "time grep if x",
        "mapfile -t a < f",
        "mapfile -d $'\\n' -t a < f",
        "xargs -I{} sh -c 'a \"$1\"' _ {}",
        "xargs -P $(nproc) -n 1 sh -c a",
        "runuser -u bob -- grep \"$X\" y",
    ] {
        assert!(read(line).is_ok(), "{line}: {:?}", read(line));
    }
}

/// Lists what a line writes; of what only the end is known of behind a `…`.
fn writes(line: &str) -> Vec<String> {
    let found = read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let files = found.writes.into_iter().map(|file| match file {
        RedirectTarget::At(path) => path,
        RedirectTarget::Ending(end) => format!("…{end}"),
    });
    files.collect()
}

/// Asserts which files are found that the redirections of lines write.
fn assert_written(rows: &[(&str, &[&str])]) {
    for (line, expected) in rows {
        assert_eq!(writes(line), *expected, "{line}");
    }
}

#[test]
fn files_that_redirections_write_are_found() {
    let rows: &[(&str, &[&str])] = &[
        (
            "a > x 2>> 'y z' < in; b &> ../out; d > /dev/null",
            &["x", "y z", "../out", "/dev/null"],
        ),
        ("a > x y z", &["x"]),
        ("a >& x", &["x"]),
        ("a 2>&1 >&2 2>&- >&3-", &[]),
        ("cat <<EOF > x\nEOF", &["x"]),
        ("bash -c 'a > x'", &["x"]),
        // What of a name is not known stands in front.
        ("a > $D/w", &["…/w"]),
        ("a > \"$F.txt\"", &["….txt"]),
        ("a > $F", &["…"]),
        ("a >& $F", &["…"]),
        ("a > .en[v]", &["…"]),
        (
            "for f in x y; do a > $f.new; done",
            &["x.new", "y.new", ".new"],
        ),
        // A variable that the line sets is followed, unless something else may set it.
        ("F=x; a > $F", &["x"]),
        ("F=x; F=y; a > ${F}.txt", &["x.txt", "y.txt", ".txt"]),
        ("D=out; F=$D/x; a > \"$F\"", &["out/x", "/x"]),
        ("export F=x; a > $F", &["x"]),
        ("F=x; read F; a > $F", &["…"]),
        ("F=x; F+=y; a > $F", &["…"]),
        ("F=x; eval 'F=y'; a > $F", &["…"]),
        ("F=$F; a > $F", &["…"]),
        ("F=(x y); a > $F", &["…"]),
        // Nobody else knows of what lies where scratch does; where there is no scratch, it may lie elsewhere.
        ("a > $TMPDIR/x", &["/x"]),
        ("T=$(mktemp); a > $T", &[]),
        ("T=\"$(mktemp -d)\"; a > \"$T/x\"", &["/x"]),
        ("TMPDIR=x; a > $TMPDIR/y", &["x/y", "/y"]),
        ("bash -c 'a > $TMPDIR/x'", &["/x"]),
        ("export TMPDIR=.; bash -c 'a > $TMPDIR/x'", &["…/x"]),
        ("eval 'TMP''DIR=.'; a > $TMPDIR/x", &["…/x"]),
        ("export PWD=d; bash -c 'a > $PWD/x'", &["…/x"]),
        ("printf -vTMPDIR .; a > $TMPDIR/x", &["…"]),
        ("F=x; printf -vF .env; a > $F", &["…"]),
        ("F=x; read -aF; a > $F", &["…"]),
        ("F=x; printf '- saved' > $F", &["x"]),
        ("bash -c 'F=x; a > $F'", &["x"]),
        ("F=x; bash -c a > $F", &["x"]),
        ("a > ~/x", &["…/x"]),
        ("F=~/x; a > $F", &["…/x"]),
        ("a > '~/x'", &["~/x"]),
        ("a > $TMPDIR/../x", &["…/../x"]),
    ];
    assert_written(rows);
}

#[test]
fn a_directory_that_a_line_goes_to_is_followed() {
    let rows: &[(&str, &[&str])] = &[
        ("a > \"$PWD/x\"", &["./x"]),
        ("a > $(pwd)/x", &["./x"]),
        ("cd d && a > x", &["x", "d/x"]),
        ("cd d && a > ../x", &["../x", "d/../x"]),
        ("cd d; cd ..; a > x", &["x", "d/x", "../x", "d/../x"]),
        ("cd d && a > /y", &["/y"]),
        ("cd -; a > x", &["x"]),
        ("cd \"$D\" && a > x", &["…/x"]),
        ("cd && a > x", &["…/x"]),
        ("cd ~/d && a > x", &["…/x"]),
        ("cd -- -d; a > ../x", &["../x", "-d/../x"]),
        ("cd -P d; a > x", &["x", "d/x"]),
        ("cd -- -; a > x", &["x"]),
        // It counts for what may run behind it.
        ("a > x; cd d", &["x"]),
        ("(cd d && b); a > x", &["x"]),
        ("(cd d && a > x)", &["x", "d/x"]),
        ("bash -c 'a > x'; cd d", &["x"]),
        ("cd d; bash -c 'a > x'", &["x", "d/x"]),
        ("trap 'a > x' EXIT; cd d", &["x", "d/x"]),
        ("f() { a > x; }; cd d; f", &["x", "d/x"]),
        ("f() { cd d; }; f; f; a > x", &["…/x"]),
        ("while b; do a > x; cd d; done", &["…/x"]),
        ("while b; do (cd d && c); a > x; done", &["x"]),
        ("eval 'cd d'; cd e; a > x", &["…/x"]),
        ("bash -c 'cd d && a > x'", &["…/x"]),
        ("env -C d bash -c 'a > x'", &["x", "d/x"]),
        ("env -iCd bash -c 'a > x'", &["x", "d/x"]),
        ("env -u A --chdir=d bash -c 'a > x'", &["x", "d/x"]),
        ("env -C d b; a > x", &["x"]),
        ("env -C d b > x", &["x"]),
        ("env b -C d; a > x", &["x"]),
    ];
    assert_written(rows);
}

#[test]
fn many_files_and_parts_are_followed_no_further_than_the_bounds() {
    let redirects: Vec<String> = (0..1_500).map(|file| format!("a >$F/{file};")).collect();
    let redirects = redirects.concat();
    // Of a hundred it is known where they lie, of the others how they end.
    let found = writes(&format!("F=x;{redirects}"));
    let is_found = |file: &str| found.iter().any(|known| known == file);
    assert!(is_found("x/99") && !is_found("…/99"));
    assert!(is_found("…/100") && !is_found("x/100"));
    assert!(is_found("…/1499"));
    // None is followed through a variable that may have many values.
    let values = "F=x;".repeat(1_000);
    let ends: Vec<String> = (0..1_500).map(|file| format!("…/{file}")).collect();
    assert_eq!(writes(&(values + &redirects)), ends);
    let deep = "a && ".repeat(10_000) + "a";
    assert_eq!(read(&deep), Err(ShellLineError::TooLong));
    assert!(read(&("a && ".repeat(500) + "a")).is_ok());
    // Each may start the next.
    assert!(read(&("env ".repeat(60) + "a")).is_ok());
    let many = read(&("env ".repeat(10_000) + "a"));
    assert_eq!(many, Err(ShellLineError::TooLong));
    let slow = format!("echo {}", "x ".repeat(10_000));
    assert!(read(&slow).is_ok());
    let found = read_within(&slow, Duration::ZERO);
    assert_eq!(found, Err(ShellLineError::TooLong));
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
        "cd x ",
        "cd - ",
        "pushd x ",
        "popd ",
        "for f in a ",
        "do ",
        "done ",
        "f() ",
        "> $f",
        "f=x ",
        "export ",
        "alias f=x ",
        "$(mktemp)",
    ];
    ropewalk_tests::fuzz::Target {
        name: "shell-rules",
        words: &words,
        check: &check,
    }
    .run();
}
