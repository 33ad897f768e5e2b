//! Runs the program and looks at what it says.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

pub mod changes;
pub mod open_session;

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_pagefold");

/// A directory of its own for a test; the database is `db` in it.
pub struct Place {
    pub directory: TempDir,
}

/// What a run gave.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run { code: output.status.code(), out: String::from_utf8(output.stdout).unwrap(), err: String::from_utf8(output.stderr).unwrap() }
    }
}

impl Run {
    /// It went well.
    #[track_caller]
    pub fn ok(self) -> Run {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert_eq!(self.err, "", "nothing on standard error when it is no terminal");
        self
    }

    /// It failed with this code, one line, and each of these texts in it.
    #[track_caller]
    pub fn fails(self, code: i32, texts: &[&str]) -> Run {
        assert_eq!(self.code, Some(code), "{self:?}");
        for text in texts {
            assert!(self.err.contains(text), "\"{text}\" not in {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    /// Standard output is one JSON document.
    #[track_caller]
    pub fn json(&self) -> Json {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}", self.out))
    }
}

impl Place {
    pub fn new() -> Place {
        Place { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        // Names of files are relative to the place.
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().unwrap().into()
    }

    /// All files below, with their bytes.
    pub fn files(&self, name: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        collect(&self.path(name), &mut found);
        found.sort();
        found
    }

    /// The files of the catalogs that the control file of `db` names, by their names.
    pub fn catalogs(&self) -> Vec<String> {
        let control = self.run(&["print", "db", "control", "--json"]).ok().json();
        let slots = control["slots"].as_array().unwrap();
        slots.iter().filter_map(|slot| Some(format!("{}.pfd", slot["catalog_file"].as_str()?))).collect()
    }

    /// A database with table `t`: 2,000 rows, primary key `id`.
    pub fn with_table() -> Place {
        let place = Place::new();
        place.write("t.csv", &rows_csv(0..2000));
        place.run(&["load", "db", "t", "t.csv", "--primary-key", "id", "--page-size", "4K"]).ok();
        place
    }
}

fn collect(path: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
}

/// Rows with a key, a text that compresses, a number and a date, some NULL.
pub fn rows_csv(ids: std::ops::Range<u32>) -> String {
    let mut text = "id,name,price,day\n".to_owned();
    for id in ids {
        let name = ["anchor chain", "sail, large", "rope \"extra\"", "compass"][id as usize % 4];
        let name = if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() };
        let price = if id % 10 == 9 { String::new() } else { format!("{}.{:02}", id * 3, id % 100) };
        text += &format!("{id},{name},{price},2024-{:02}-{:02}\n", id % 12 + 1, id % 28 + 1);
    }
    text
}
