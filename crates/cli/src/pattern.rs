//! Names of files with `*`, `?` and `[...]`, for shells that do not resolve them and for quotes around them.

use pagefold::io::Storage;
use std::path::{Component, Path, PathBuf};

/// Does the name have a character that stands for others?
pub(crate) fn is_pattern(name: &Path) -> bool {
    name.to_string_lossy().contains(['*', '?', '['])
}

/// Does a name fit a pattern? Without recursion, so in the product of both lengths at most.
pub(crate) fn fits(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where the last `*` is, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let taken = match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class(&pattern[p..], name[n]),
            Some(c) if *c == name[n] => Some(1),
            _ => None,
        };
        match (taken, star) {
            (Some(taken), _) => (p, n) = (p + taken, n + 1),
            (None, Some((at, from))) => {
                star = Some((at, from + 1));
                (p, n) = (at + 1, from + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The length of a class such as `[a-z]` or `[!0-9]` if it has the character. One that is not closed is a bracket.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let start = if negated { 2 } else { 1 };
    let Some(end) = (start + 1..pattern.len()).find(|i| pattern[*i] == ']') else { return (c == '[').then_some(1) };
    let (mut at, mut has) = (start, false);
    while at < end {
        if at + 2 < end && pattern[at + 1] == '-' {
            has |= (pattern[at]..=pattern[at + 2]).contains(&c);
            at += 3;
        } else {
            has |= pattern[at] == c;
            at += 1;
        }
    }
    (has != negated).then_some(end + 1)
}

/// The files that fit, sorted; directories do not, and names that begin with a point only where the pattern does.
pub(crate) fn find(storage: &dyn Storage, pattern: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    let components: Vec<Component<'_>> = pattern.components().collect();
    for (i, component) in components.iter().enumerate() {
        let is_last = i + 1 == components.len();
        if !is_pattern(component.as_os_str().as_ref()) {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        }
        let wanted: Vec<char> = component.as_os_str().to_string_lossy().chars().collect();
        let mut next = Vec::new();
        for directory in &found {
            // What is no directory has nothing in it.
            for path in storage.list(directory).unwrap_or_default() {
                let name: Vec<char> = path.file_name().unwrap_or_default().to_string_lossy().chars().collect();
                if fits(&wanted, &name) && (name.first() != Some(&'.') || wanted.first() == Some(&'.')) {
                    next.push(path);
                }
            }
        }
        next.retain(|path| !is_last || storage.list(path).is_err());
        found = next;
    }
    let mut files = Vec::with_capacity(found.len());
    for path in found {
        if storage.exists(&path)? {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        let fits = |p: &str, n: &str| fits(&p.chars().collect::<Vec<_>>(), &n.chars().collect::<Vec<_>>());
        for (pattern, name) in [
            ("*", ""),
            ("*.csv", "a.csv"),
            ("a?c", "abc"),
            ("a*b*c", "aXbYbZc"),
            ("[a-c]1", "b1"),
            ("[!a]1", "b1"),
            ("[", "["),
            ("*a*a*", "banana"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("*.csv", "a.csvx"), ("a?c", "ac"), ("[a-c]1", "d1"), ("[!a]1", "a1"), ("*a*a*a*a*", "banana")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
