//! The layers of the engine's modules, which the head of `src/lib.rs` lists from low to high: a module names only modules of lower layers.
//!
//! What counts is what the sources say: `crate::a`, `crate::{a, b::c}`, names that the crate re-exports, and `super::` chains that lead out of a module. Comments,
//! strings and test code do not count.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A place where a top-level module names another.
#[derive(Debug)]
struct Edge {
    from: String,
    to: String,
    /// File, line and what is there.
    place: String,
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Layers of the modules, by name: the rows of the table in the head of `lib.rs`, whose second column has the modules.
fn layers(head: &str) -> BTreeMap<String, usize> {
    let rows = head.lines().filter_map(|line| line.strip_prefix("//! | ")).filter_map(|row| row.split('|').nth(1));
    let rows = rows.filter(|modules| modules.contains('`'));
    let mut layers = BTreeMap::new();
    for (layer, modules) in rows.enumerate() {
        for module in modules.split('`').skip(1).step_by(2) {
            assert_eq!(layers.insert(module.to_owned(), layer), None, "{module} has two layers");
        }
    }
    layers
}

/// The source with blanks in the place of comments, of what is in strings, and of test code; and names of modules of test code.
fn code(source: &str) -> (String, Vec<String>) {
    let mut text = without_comments_and_strings(source);
    let mut tests = Vec::new();
    while let Some(start) = text.find("#[cfg(test)]") {
        let end = start + item_end(&text[start..]);
        let item = &text[start..end];
        tests.extend(item.strip_suffix(';').and_then(|item| item.split_once("mod ")).map(|(_, name)| name.trim().to_owned()));
        let blank: String = item.chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        text.replace_range(start..end, &blank);
    }
    (text, tests)
}

/// Where an item ends: with its first `;` outside of braces, or the brace that closes its first one.
fn item_end(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            return at + 1;
        }
    }
    text.len()
}

fn without_comments_and_strings(source: &str) -> String {
    let mut out = String::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '"' {
            string_bytes(rest)
        } else if c == '\'' {
            character_bytes(rest)
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
        rest = &rest[skipped..];
    }
    out
}

fn string_bytes(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of a character literal; 1 for the quote of a lifetime.
fn character_bytes(text: &str) -> usize {
    let inside = &text[1..];
    match inside.chars().next() {
        Some('\\') => inside[2..].find('\'').map_or(1, |end| end + 4),
        Some(c) if inside[c.len_utf8()..].starts_with('\'') => c.len_utf8() + 2,
        _ => 1,
    }
}

/// The first names of the paths that begin here: one, or those of a group in braces.
fn first_names(path: &str) -> Vec<&str> {
    let name = |path: &'_ str| path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
    let Some(group) = path.trim_start().strip_prefix('{') else { return vec![&path[..name(path)]] };
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let path = group[start..at].trim_start();
                names.push(&path[..name(path)]);
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Where the code of a module, so many modules deep, begins paths from the root of the crate.
fn paths_from_root(text: &str, depth: usize) -> Vec<usize> {
    let is_start = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    let of_crate = text.match_indices("crate::").map(|(at, found)| (at, at + found.len()));
    let of_super = text.match_indices("super::").filter_map(|(at, _)| {
        let chain = text[at..].split("super::").take_while(|between| between.is_empty()).count();
        (chain == depth).then_some((at, at + chain * "super::".len()))
    });
    of_crate.chain(of_super).filter(|(at, _)| is_start(*at)).map(|(_, end)| end).collect()
}

/// What `lib.rs` re-exports, by name: the module.
fn reexports(lib: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for statement in lib.split(';').filter_map(|statement| statement.trim().strip_prefix("pub use ")) {
        let path = statement.strip_prefix("crate::").unwrap_or(statement);
        let (module, rest) = path.split_once("::").unwrap_or((path, ""));
        names.extend(first_names(rest).into_iter().map(|name| (name.to_owned(), module.to_owned())));
    }
    names
}

/// All source files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Names of the modules that a file is in, its own last.
fn module_of(file: &Path) -> Vec<String> {
    let mut names: Vec<String> = file.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    names.pop_if(|last| last == "mod");
    names
}

fn edges() -> Vec<Edge> {
    let sources = sources();
    let mut texts = BTreeMap::new();
    let mut tests: Vec<Vec<String>> = Vec::new();
    for path in files(&sources) {
        let file = path.strip_prefix(&sources).expect("a file of the sources").to_path_buf();
        let (text, modules) = code(&fs::read_to_string(&path).expect("a source"));
        let parent = if file.as_os_str() == "lib.rs" { Vec::new() } else { module_of(&file) };
        tests.extend(modules.into_iter().map(|name| parent.iter().cloned().chain([name]).collect()));
        texts.insert(file, text);
    }
    let root = texts.remove(Path::new("lib.rs")).expect("lib.rs");
    let reexports = reexports(&root);
    let mut edges = Vec::new();
    for (file, text) in &texts {
        let module = module_of(file);
        if tests.iter().any(|test| module.starts_with(test)) {
            continue;
        }
        for at in paths_from_root(text, module.len()) {
            for name in first_names(&text[at..]) {
                let to = reexports.get(name).map_or(name, String::as_str);
                if to != module[0] {
                    let line = text[..at].matches('\n').count();
                    let shown = text.lines().nth(line).unwrap_or_default().trim();
                    let place = format!("{}:{}: {shown}", file.display(), line + 1);
                    edges.push(Edge { from: module[0].clone(), to: to.to_owned(), place });
                }
            }
        }
    }
    edges
}

#[test]
fn a_module_names_only_lower_ones() {
    let layers = layers(&fs::read_to_string(sources().join("lib.rs")).expect("lib.rs"));
    let edges = edges();
    let layer = |module: &str| *layers.get(module).unwrap_or_else(|| panic!("lib.rs gives module {module} no layer"));
    let against = edges.iter().filter(|edge| layer(&edge.to) >= layer(&edge.from));
    let lines: Vec<String> = against.map(|edge| format!("{} names {}, which is not lower: {}", edge.from, edge.to, edge.place)).collect();
    assert!(lines.is_empty(), "{} lines against the order of the layers:\n{}", lines.len(), lines.join("\n"));
}

/// Every module has a layer, and each that has one is there.
#[test]
fn the_layers_are_those_of_the_modules() {
    let lib = fs::read_to_string(sources().join("lib.rs")).expect("lib.rs");
    let (text, _) = code(&lib);
    let declared = text.split(';').filter_map(|item| item.trim().strip_prefix("pub ").or(Some(item.trim()))?.strip_prefix("mod "));
    let declared: Vec<String> = declared.map(str::to_owned).collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    assert_eq!(layers(&lib).into_keys().collect::<Vec<_>>(), declared);
}

/// The page on the architecture shows the same layers, the highest first.
#[test]
fn the_architecture_shows_the_layers() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ARCHITECTURE.md");
    let page = fs::read_to_string(page).expect("the page");
    let picture = page.split_once("## The layers of the engine").and_then(|(_, rest)| rest.split("```").nth(1)).expect("a picture");
    let rows = picture.lines().rev().filter(|row| !row.is_empty()).map(|row| row.split("  ").next().unwrap_or_default());
    let shown: BTreeMap<String, usize> =
        rows.enumerate().flat_map(|(layer, modules)| modules.split(", ").map(move |module| (module.to_owned(), layer))).collect();
    assert_eq!(shown, layers(&fs::read_to_string(sources().join("lib.rs")).expect("lib.rs")));
}

/// The reading of sources finds each way to name a module, and nothing else.
#[test]
fn each_way_to_name_a_module_is_found() {
    let found = |text: &str, depth: usize| -> Vec<String> {
        let (text, _) = code(text);
        paths_from_root(&text, depth).into_iter().flat_map(|at| first_names(&text[at..])).map(str::to_owned).collect()
    };
    assert_eq!(found("use crate::a::B;", 1), ["a"]);
    assert_eq!(found("use crate::{\n    a::{self, B}, c,\n    D,\n};", 1), ["a", "c", "D"]);
    assert_eq!(found("fn f(x: &'a crate::a::B) -> u8 { b'\\'' as u8 + super::b::C }", 1), ["a", "b"]);
    assert_eq!(found("use super::a; use super::super::b; use super::super::super::c;", 2), ["b"]);
    assert_eq!(
        found("// crate::a\n/* crate::b */ /// [`crate::c`]\nconst D: &str = \"crate::\\\"e\"; const F: char = '\"'; use crate::g;", 1),
        ["g"]
    );
    assert_eq!(
        found("pub(crate) fn f() { mycrate::a(); } #[cfg(test)]\nmod tests { use crate::b; } #[cfg(test)] use crate::c; use crate::d;", 1),
        ["d"]
    );
    assert_eq!(code("#[cfg(test)]\nmod tests;\nmod other;").1, ["tests"]);
}
