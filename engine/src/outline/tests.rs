use super::*;

fn outlined(path: &str, source: &str) -> String {
    render(&outline(Language::of(path).unwrap(), source).unwrap())
}

#[test]
fn each_language_tells_what_a_file_defines_without_the_bodies() {
    let rows = [
        (
            "a.rs",
            "/// Doc.\npub struct A<T>\nwhere\n    T: B,\n{\n    b: T,\n}\n\nimpl A<u8> {\n    pub fn c(\n        &self,\n        d: u8,\n    ) -> u8 {\n        fn inner() {}\n        d\n    }\n}\n\nmod e {\n    const F: u8 = 1;\n}\n",
            "2-7  pub struct A<T> where T: B,\n9-17  impl A<u8>\n10-16    pub fn c( &self, d: u8, ) -> u8\n19-21  mod e\n20-20    const F: u8 = 1\n",
        ),
        (
            "a.py",
            "import os\nX = 1\nNAMES = (\"a very long first name\", \"and a second one that is as long\")\n_hidden = 2\nT: dict = {\n  1: 2,\n  2: 3,\n}\n\nclass A(B):\n    \"\"\"Doc.\"\"\"\n\n    @property\n    def c(self, d: int = 1) -> str:\n        def inner(): pass\n        return str(d)\n\nif os.name:\n    async def e(): ...\n",
            "2-2  X = 1\n3-3  NAMES\n5-8  T: dict\n10-16  class A(B)\n14-16    def c(self, d: int = 1) -> str\n19-19  async def e()\n",
        ),
        (
            "a.js",
            "export default class A extends B {\n  c(d) { return d }\n}\nexport const e = async (f) => {\n  return f\n}\nconst g = 1\nexport const LIMIT = 16 * 1024\nconst t = [\n  1,\n  2,\n]\nfunction* h() {}\ndescribe('x', () => { function no() {} })\n",
            "1-3  class A extends B\n2-2    c(d)\n4-6  e = async (f) =>\n8-8  LIMIT = 16 * 1024\n9-12  t\n13-13  function* h()\n",
        ),
        (
            "a.ts",
            "export interface A { b: string }\nexport type C = A | undefined\nnamespace D {\n  export enum E { F }\n}\nabstract class G {\n  abstract h(): void\n}\nexport function i(j: number): string { return '' }\n",
            "1-1  interface A\n2-2  type C = A | undefined\n3-5  namespace D\n4-4    enum E\n6-8  abstract class G\n7-7    abstract h(): void\n9-9  function i(j: number): string\n",
        ),
        (
            "a.tsx",
            "export const A = ({ b }: Props) => <p>{b}</p>\nexport function C() { return <A b=\"1\" /> }\n",
            "1-1  A = ({ b }: Props) =>\n2-2  function C()\n",
        ),
        (
            "a.go",
            "package a\n\ntype B struct {\n\tC int\n}\n\nfunc (b *B) D(e string) error {\n\treturn nil\n}\n\nfunc F() {}\n\nconst (\n\tG = 1\n\th\n)\n",
            "3-5  B struct\n7-9  func (b *B) D(e string) error\n11-11  func F()\n14-14  G = 1\n15-15  h\n",
        ),
        (
            "A.java",
            "package a;\n\npublic class A<T> extends B {\n  public A() {}\n  @Override\n  public int c(String d) throws E { return 1; }\n  enum F { G }\n}\n",
            "3-8  public class A<T> extends B\n4-4    public A()\n5-6    @Override public int c(String d) throws E\n7-7    enum F\n",
        ),
        (
            "a.h",
            "#ifndef A\ntypedef struct {\n  int b;\n} C;\nstruct D { int e; };\nstruct D *f(int g, char *h);\nextern int i;\n#endif\nstatic int j(void) { return 0; }\n",
            "2-4  typedef struct C\n5-5  struct D\n6-6  struct D *f(int g, char *h)\n9-9  static int j(void)\n",
        ),
        (
            "a.hpp",
            "namespace a {\ntemplate <typename T>\nclass B : public C {\npublic:\n  B();\n  int d(T e) const { return 1; }\n};\n}\n",
            "1-8  namespace a\n3-7    class B : public C\n5-5      B()\n6-6      int d(T e) const\n",
        ),
    ];
    for (path, source, expected) in rows {
        assert_eq!(outlined(path, source), expected, "{path}");
    }
}

#[test]
fn what_a_file_imports_is_told_in_one_line_before_the_rest() {
    let rows = [
        (
            "a.rs",
            "//! A.\n\nuse std::fmt;\npub use b::{\n    C,\n    D,\n};\n\nmod e {\n    use super::*;\n}\n",
            "3-7  use std::fmt; pub use b::{ C, D, }\n9-11  mod e\n",
        ),
        (
            "a.py",
            "from __future__ import annotations\nimport os, sys\nif sys.platform:\n    from b import (\n        c,\n    )\n\ndef d():\n    import e\n",
            "1-6  from __future__ import annotations; import os, sys; from b import ( c, )\n8-9  def d()\n",
        ),
        (
            "a.js",
            "import a, { b } from './c.js';\nimport 'd'\nfunction e() {}\n",
            "1-2  import a, { b } from './c.js'; import 'd'\n3-3  function e()\n",
        ),
        (
            "a.ts",
            "import type { A } from './a'\ninterface B {}\n",
            "1-1  import type { A } from './a'\n2-2  interface B\n",
        ),
        (
            "a.go",
            "package a\n\nimport (\n\t\"fmt\"\n\tb \"c/d\"\n)\n\nfunc E() {}\n",
            "3-6  import ( \"fmt\" b \"c/d\" )\n8-8  func E()\n",
        ),
        (
            "A.java",
            "package a;\n\nimport java.util.List;\nimport static b.C.d;\n\nclass A {}\n",
            "3-4  import java.util.List; import static b.C.d\n6-6  class A\n",
        ),
        (
            "a.h",
            "#ifndef A\n#include <stdio.h>\n#include \"b.h\"\nint c(void);\n#endif\n",
            "2-3  #include <stdio.h>; #include \"b.h\"\n4-4  int c(void)\n",
        ),
        (
            "a.cpp",
            "#include \"b.hpp\"\nusing c::d;\nvoid e() {}\n",
            "1-2  #include \"b.hpp\"; using c::d\n3-3  void e()\n",
        ),
        ("b.py", "def a(): ...\n", "1-1  def a()\n"),
    ];
    for (path, source, expected) in rows {
        let symbols = outline_with_imports(Language::of(path).unwrap(), source).unwrap();
        assert_eq!(render(&symbols), expected, "{path}");
    }
    let many = format!("{}fn b() {{}}\n", "use a;\n".repeat(1_000));
    let symbols = outline_with_imports(Language::Rust, &many).unwrap();
    assert_eq!((symbols.len(), symbols[0].lines.clone()), (2, 1..=1_000));
    assert!(symbols[0].signature.chars().count() <= IMPORTS);
}

#[test]
fn what_cannot_be_parsed_hides_nothing_behind_it() {
    let text = outlined("a.rs", "fn a() {}\n@@ fn (\nfn b() {}\n");
    assert!(text.contains("fn a()") && text.contains("fn b()"), "{text}");
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = format!("{}{}", "mod a {".repeat(50_000), "}".repeat(50_000));
    let symbols = outline(Language::Rust, &deep).unwrap();
    assert!(!symbols.is_empty() && symbols.len() <= MOST_SYMBOLS);
    for source in [
        "(".repeat(100_000),
        "[{".repeat(50_000),
        "\"\"\"".repeat(100_001),
    ] {
        for language in [Language::Python, Language::JavaScript, Language::Cpp] {
            // Whether there is an outline of this does not matter; that it comes to an end does.
            drop(outline(language, &source));
        }
    }
    let long = "x".repeat(LONGEST_BYTES + 1);
    assert_eq!(outline(Language::C, &long), Err(OutlineError::TooLong));
    let many = "fn a() {}\n".repeat(MOST_SYMBOLS + 1);
    assert!(outlined("a.rs", &many).ends_with("[there are more]\n"));
}

#[test]
fn the_deepest_levels_go_first_and_no_outline_ends_before_its_file() {
    let source =
        "mod a {\n  impl B {\n    fn c() {}\n    fn d() {}\n  }\n}\nmod e {\n  fn f() {}\n}\n";
    let symbols = outline(Language::Rust, source).unwrap();
    let whole = render(&symbols);
    let outer = "1-6  mod a\n7-9  mod e\n";
    let middle = "1-6  mod a\n2-5    impl B\n7-9  mod e\n8-8    fn f()\n";
    let rows = [
        (whole.len() + REST_BYTES, usize::MAX, whole.clone()),
        (
            whole.len() + REST_BYTES,
            1,
            format!("{middle}[2 more inside of these]\n"),
        ),
        (
            whole.len() + REST_BYTES - 1,
            usize::MAX,
            format!("{middle}[2 more inside of these]\n"),
        ),
        (
            outer.len() + REST_BYTES,
            usize::MAX,
            format!("{outer}[4 more inside of these]\n"),
        ),
        (
            outer.len() + REST_BYTES - 1,
            usize::MAX,
            "1-6  mod a\n[5 more]\n".to_owned(),
        ),
        (0, usize::MAX, "[6 more]\n".to_owned()),
    ];
    for (most, deepest, expected) in rows {
        assert_eq!(
            render_within(&symbols, most, deepest),
            expected,
            "{most} {deepest}"
        );
    }
    let long = format!("fn a({}) {{}}\n", "argument: usize, ".repeat(15)).repeat(50);
    let symbols = outline(Language::Rust, &long).unwrap();
    let short = render_within(&symbols, 4_000, usize::MAX);
    assert_eq!(
        (short.lines().count(), short.contains("more")),
        (50, false),
        "{short}"
    );
}

/// Returns functions of Python, each of two lines.
fn functions(names: impl IntoIterator<Item = String>, indent: &str) -> String {
    let one = |name: String| format!("{indent}def {name}(self):\n{indent}    pass\n");
    names.into_iter().map(one).collect()
}

fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{prefix}{number}"))
        .collect()
}

#[test]
fn tests_of_a_file_with_many_are_told_together_and_all_else_by_itself() {
    let source = [
        functions(numbered("test_plain_", 45), ""),
        functions(["helper", "testing", "tested"].map(str::to_owned), ""),
        functions(numbered("test_late_", 3), ""),
        "class TestWide(Base):\n".to_owned(),
        functions(numbered("testWide", 4), "    "),
        functions(["latest".to_owned()], "    "),
    ];
    let symbols = outline(Language::Python, &source.concat()).unwrap();
    let told = render_within(&symbols, 16 * 1024, usize::MAX);
    let expected = "1-90  45 functions `test_plain_0` … `test_plain_44`; `code_outline` tells each\n\
        91-92  def helper(self)\n93-94  def testing(self)\n95-96  def tested(self)\n\
        97-98  def test_late_0(self)\n99-100  def test_late_1(self)\n101-102  def test_late_2(self)\n\
        103-113  class TestWide(Base)\n\
        104-111    4 functions `testWide0` … `testWide3`; `code_outline` tells each\n\
        112-113    def latest(self)\n";
    assert_eq!(told, expected);
    assert!(
        render(&symbols).contains("  def test_plain_17(self)\n"),
        "told in full"
    );
    let few = outline(Language::Python, &functions(numbered("test_", 40), "")).unwrap();
    assert_eq!(render_within(&few, 16 * 1024, usize::MAX), render(&few));
}

#[test]
fn a_test_is_told_by_its_name_in_each_language() {
    let rows = [
        ("def test_plain()", Some("test_plain")),
        (
            "async def test_plain(tmp_path: Path) -> None",
            Some("test_plain"),
        ),
        ("func TestPlain(t *testing.T)", Some("TestPlain")),
        ("func (s *Suite) TestPlain()", Some("TestPlain")),
        ("public void testPlain() throws E", Some("testPlain")),
        ("def helper(name=test_name())", None),
        ("def tester()", None),
        ("class TestPlain(Base)", None),
        ("class TestPlain", None),
        ("TEST_CASES", None),
    ];
    for (signature, name) in rows {
        assert_eq!(test_name(signature), name, "{signature}");
    }
}
