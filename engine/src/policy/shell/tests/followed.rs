use super::{assert_written, writes};

#[test]
fn a_directory_that_a_line_goes_back_to_or_looks_for_is_followed() {
    let rows: &[(&str, &[&str])] = &[
        ("OLDPWD=web; cd -; a > x", &["…/x"]),
        ("OLDPWD=web cd -; a > x", &["…/x"]),
        ("cd d; cd ..; cd -; a > x", &["x", "d/x", "../x", "d/../x"]),
        ("pushd d; popd; a > x", &["x", "d/x"]),
        ("pushd .; DIRSTACK[1]=web; popd; a > x", &["…/x"]),
        ("pushd -n web; cd d; popd; a > x", &["…/x"]),
        ("bash -c 'cd -; a > x'", &["…/x"]),
        ("CDPATH=web; cd d; a > x", &["…/x"]),
        ("CDPATH=web cd d; a > x", &["…/x"]),
        ("export CDPATH=web; cd d; a > x", &["…/x"]),
        ("export CD\"PATH\"=web; cd d; a > x", &["…/x"]),
        ("CDPATH=web; cd ./d; a > x", &["x", "./d/x"]),
        ("CDPATH=web; cd ..; a > x", &["x", "../x"]),
        ("shopt -s cdable_vars; v=web; cd v; a > x", &["…/x"]),
        ("shopt -s globstar; a > x", &["x"]),
        ("chdir d; a > x", &["x", "d/x"]),
        ("sudo -D web bash -c 'a > x'", &["…/x"]),
        ("sudo bash -c 'a > x'", &["x"]),
        ("sudo -nE -u bob A=1 bash -c 'a > x'", &["x"]),
        ("sudo -n -u bob -D web bash -c 'a > x'", &["…/x"]),
        ("sudo -u $X bash -c 'a > x'", &["…/x"]),
        ("sudo A=$X bash -c 'a > x'", &["…/x"]),
        ("find . -execdir sh -c 'a > x' ';'", &["…/x"]),
        ("find . -exec sh -c 'a > x' ';'", &["x"]),
        // A group opens its files before it goes anywhere.
        ("{ cd d; b; } > x; a > y", &["x", "y", "d/y"]),
        ("(cd d; b) > x; a > y", &["x", "y"]),
        ("if b; then cd d; fi > x", &["x"]),
        ("b && { cd d; } > x", &["x", "d/x"]),
        ("f() { a > x; } > y; cd d; f", &["x", "d/x", "y", "d/y"]),
        ("f() (cd d; f; a > x); f", &["…/x"]),
    ];
    assert_written(rows);
}

#[test]
fn a_variable_has_no_value_that_the_line_does_not_give_it_for_sure() {
    let rows: &[(&str, &[&str])] = &[
        // Redirections are read before what stands in front of their command is set.
        ("F=x a > $F", &["…"]),
        ("F=x a > $F.txt", &["….txt"]),
        ("F=y; F=x a > $F", &["y", "x"]),
        ("b && F=x; a > \"$F.txt\"", &["x.txt", ".txt"]),
        ("_=x; b .env; a > $_", &["…"]),
        ("REPLY=x; read; a > $REPLY", &["…"]),
        // Without quotes the shell makes other words of it.
        ("F='.en?'; a > $F", &["…"]),
        ("F='.en?'; a > \"$F\"", &[".en?"]),
        ("F='.en[v'; a > $F]", &["…"]),
        ("F='.env '; a > $F", &["…"]),
        ("F=\"$X .env\"; a > $F", &["….env"]),
        ("IFS=x; F=.envx; a > $F", &["…"]),
        ("IFS=x; F=.envx; a > \"$F\"", &[".envx"]),
        ("IFS=x A=$(a > $F.y) read l", &["…"]),
        ("IFS=x read l; read() { a > $F.y; }", &["…"]),
    ];
    assert_written(rows);
    for set in [
        "export F\"O\"O=.env",
        "export F\\OO=.env",
        "N=FO; export ${N}O=.env",
        "builtin export F\"O\"O=.env",
        "read F\"O\"O",
        "O=-vFOO; printf $O .env",
        "O=-v; printf \"$O\" F\"O\"O .env",
        "O=-vF; printf \"${O}OO\" .env",
        "O=-vFOO; printf \"$O[0]\" .env",
        "O=vFOO; printf \"-$O\" .env",
        "env $X F\"O\"O=.env a",
        "declare -n r=F\"O\"O; r=.env",
        "M=F\"O\"O; : ${!M:=.env}",
    ] {
        let line = format!("FOO=x; {set}; a > $FOO");
        assert_eq!(writes(&line), ["…"], "{line}");
    }
    for line in ["declare -l F=.ENV; a > $F", "declare -i F=1+1; a > $F"] {
        assert_eq!(writes(line), ["…"], "{line}");
    }
}

#[test]
fn a_program_is_trusted_only_where_the_line_puts_nothing_in_its_place() {
    for put in [
        "mktemp() { b; }",
        "function mktemp { b; }",
        "alias mktemp=b",
        "alias mk\"temp\"=b",
        "BASH_CMDS[mktemp]=./b",
        "BASH_ALIASES[mktemp]=b",
        "export TMPDIR=web",
    ] {
        let line = format!("{put}; a > $(mktemp)");
        assert_eq!(writes(&line), ["…"], "{line}");
    }
    let rows: &[(&str, &[&str])] = &[
        ("pwd() { b; }; a > $(pwd)/x", &["…/x"]),
        (
            "env 'BASH_FUNC_mktemp%%=() { b; }' bash -c 'a > $(mktemp)'",
            &["…"],
        ),
        ("a > $(mktemp).env", &[".env"]),
        // Another program may write the file itself.
        ("PATH=.; a > $(mktemp)", &[]),
        ("a > $(mktemp web/XXX)", &["…"]),
        ("a > $(mktemp --suffix=.env)", &["…"]),
        ("a > $(mktemp -d /tmp/log.XXXX)", &[]),
        ("a > $(mktemp -t log.XXXX)", &[]),
    ];
    assert_written(rows);
}

#[test]
fn honest_lines_are_followed_as_far_as_they_say_what_they_write() {
    let rows: &[(&str, &[&str])] = &[
        ("for f in a b; do c > \"$f\"; done", &["a", "b"]),
        (
            "for f in a b; do c > \"out/$f.log\"; done",
            &["out/a.log", "out/b.log", "out/.log"],
        ),
        ("for f in src/*.rs; do c > \"$f\"; done", &["….rs"]),
        ("for f in *.md; do c > out/$f; done", &["….md", "out/"]),
        ("out=$(mktemp -d); c > \"$out/log\"", &["/log"]),
        ("N=1; c > run-$N.log", &["run-1.log", "run-.log"]),
        ("F=x; printf \"$m\\n\" > $F", &["x"]),
        ("cd app && env CI=1 npx jest \"$t\" > x", &["x", "app/x"]),
        (
            "while IFS= read -r l; do c >> $n.txt; done < in",
            &["….txt"],
        ),
        (
            "export PATH=\"$HOME/.cargo/bin:$PATH\"; t=$(mktemp); c > \"$t\"",
            &[],
        ),
        ("F=x; declare -A m; declare -i n=0; c > $F", &["x"]),
        ("F=x; c ${!m[@]} \"${!m[*]}\" > $F", &["x"]),
        // Of these nothing is known before.
        ("for f in $X; do c > \"$f\"; done", &["…"]),
        ("for f in \"$@\"; do c > \"$f\"; done", &["…"]),
        ("for f in $X.rs; do c > \"$f\"; done", &["…"]),
        ("for f in {a,.env}; do c > \"$f\"; done", &["…"]),
        ("for f in .[e]nv; do c > \"$f\"; done", &["…nv"]),
        ("for f in a; do read f; c > \"$f\"; done", &["…"]),
        ("select f in a; do c > \"$f\"; done", &["…"]),
        ("while read f; do c > \"$f\"; done", &["…"]),
        ("f() { c > \"$1\"; }; f a", &["…"]),
        ("c > \"$HOME/x\"", &["…/x"]),
    ];
    assert_written(rows);
}
