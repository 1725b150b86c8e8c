//! Knows the languages that can be outlined: their endings, their grammar, and which of its nodes define something.

use tree_sitter::Node;

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cpp,
    /// Go.
    Go,
    /// Java.
    Java,
    /// JavaScript, with JSX.
    JavaScript,
    /// Python.
    Python,
    /// Rust.
    Rust,
    /// TypeScript.
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
}

/// What a node is to an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A definition whose inside is of no interest: a function, a type.
    Leaf,
    /// A definition that holds others.
    Container,
    /// What the file takes from others.
    Import,
    /// No definition, but some may lie in it.
    Around,
    /// Neither.
    Opaque,
}

impl Language {
    /// Returns the language of a file by its ending.
    pub fn of(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        Some(match ending {
            "c" | "h" => Self::C,
            "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => Self::Cpp,
            "go" => Self::Go,
            "java" => Self::Java,
            "js" | "jsx" | "mjs" | "cjs" => Self::JavaScript,
            "py" | "pyi" => Self::Python,
            "rs" => Self::Rust,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            _ => return None,
        })
    }

    pub(super) fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::C => tree_sitter_c::LANGUAGE.into(),
            Self::Cpp => tree_sitter_cpp::LANGUAGE.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::Java => tree_sitter_java::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
        }
    }

    /// Says what `node` of `source` is to an outline.
    pub(super) fn part(self, node: Node<'_>, source: &str) -> Part {
        let kind = node.kind();
        if self.leaves().contains(&kind) {
            return Part::Leaf;
        }
        if self.containers().contains(&kind) {
            return Part::Container;
        }
        if self.imports().contains(&kind) {
            return Part::Import;
        }
        match (self, kind) {
            // A name that a function is assigned to is how many write a function.
            (Self::JavaScript | Self::TypeScript | Self::Tsx, "variable_declarator") => {
                let assigned = node.child_by_field_name("value").map(|value| value.kind());
                match assigned {
                    Some("arrow_function" | "function_expression" | "generator_function") => {
                        Part::Leaf
                    }
                    Some("class") => Part::Container,
                    _ => value(node, source),
                }
            }
            (Self::Python, "assignment") => value(node, source),
            (Self::C | Self::Cpp, "declaration" | "field_declaration") => declaration(node),
            (Self::C | Self::Cpp, "class_specifier" | "struct_specifier" | "union_specifier") => {
                with_body(node, Part::Container)
            }
            (Self::C | Self::Cpp, "enum_specifier") => with_body(node, Part::Leaf),
            (_, kind) if is_opaque(kind) => Part::Opaque,
            _ => Part::Around,
        }
    }

    const fn leaves(self) -> &'static [&'static str] {
        match self {
            Self::C | Self::Cpp => &[
                "function_definition",
                "type_definition",
                "alias_declaration",
            ],
            Self::Go => &[
                "function_declaration",
                "method_declaration",
                "type_spec",
                "type_alias",
                "const_spec",
            ],
            Self::Java => &[
                "method_declaration",
                "constructor_declaration",
                "compact_constructor_declaration",
                "annotation_type_declaration",
            ],
            Self::JavaScript | Self::TypeScript | Self::Tsx => &[
                "function_declaration",
                "generator_function_declaration",
                "function_signature",
                "method_definition",
                "abstract_method_signature",
                "interface_declaration",
                "type_alias_declaration",
                "enum_declaration",
            ],
            Self::Python => &["function_definition"],
            Self::Rust => &[
                "function_item",
                "function_signature_item",
                "struct_item",
                "enum_item",
                "union_item",
                "const_item",
                "static_item",
                "type_item",
                "macro_definition",
            ],
        }
    }

    const fn containers(self) -> &'static [&'static str] {
        match self {
            Self::C | Self::Go => &[],
            Self::Cpp => &["namespace_definition"],
            Self::Java => &[
                "class_declaration",
                "interface_declaration",
                "enum_declaration",
                "record_declaration",
            ],
            Self::JavaScript | Self::TypeScript | Self::Tsx => &[
                "class_declaration",
                "abstract_class_declaration",
                "internal_module",
                "module",
            ],
            Self::Python => &["class_definition"],
            Self::Rust => &["impl_item", "trait_item", "mod_item"],
        }
    }

    const fn imports(self) -> &'static [&'static str] {
        match self {
            Self::C => &["preproc_include"],
            Self::Cpp => &["preproc_include", "using_declaration"],
            Self::Go | Self::Java => &["import_declaration"],
            Self::JavaScript | Self::TypeScript | Self::Tsx => &["import_statement"],
            Self::Python => &[
                "import_statement",
                "import_from_statement",
                "future_import_statement",
            ],
            Self::Rust => &["use_declaration"],
        }
    }
}

/// A value counts where the whole file can see it, if it takes several lines, such as a table of routes or formats, or its
/// name says that it is a constant.
fn value(node: Node<'_>, source: &str) -> Part {
    let is_long = node.end_position().row - node.start_position().row >= 3;
    let name = node.child_by_field_name("left");
    let name = name.or_else(|| node.child_by_field_name("name"));
    let name = name.and_then(|name| source.get(name.byte_range()));
    let is_constant = name.is_some_and(is_upper_case);
    let around = node.parent().and_then(|statement| statement.parent());
    let is_global = around
        .is_some_and(|around| matches!(around.kind(), "module" | "program" | "export_statement"));
    if (is_long || is_constant) && is_global {
        Part::Leaf
    } else {
        Part::Opaque
    }
}

fn is_upper_case(name: &str) -> bool {
    let letter =
        |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.chars().all(letter)
}

/// A declaration counts where it declares a function; else a type may be defined in it.
fn declaration(node: Node<'_>) -> Part {
    let mut declarator = node.child_by_field_name("declarator");
    while let Some(inner) = declarator {
        if inner.kind() == "function_declarator" {
            return Part::Leaf;
        }
        declarator = inner.child_by_field_name("declarator");
    }
    Part::Around
}

/// A type that is only named is not defined there.
fn with_body(node: Node<'_>, part: Part) -> Part {
    match node.child_by_field_name("body") {
        Some(_) => part,
        None => Part::Opaque,
    }
}

fn is_opaque(kind: &str) -> bool {
    kind.ends_with("expression")
        || matches!(
            kind,
            "arguments" | "parameters" | "string" | "object" | "token_tree"
        )
}
