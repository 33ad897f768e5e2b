//! A process that is killed: this test program once more, as one of its tests.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Starts this program again with one of its tests and these variables, kills it after a time, and returns the lines that it wrote.
///
/// Panics when it did: what it wrote about that is in the message.
pub(crate) fn run_and_kill(test: &str, variables: &[(&str, &dyn Display)], after: Duration) -> Vec<String> {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--quiet"])
        .envs(variables.iter().map(|(name, value)| (name, value.to_string())))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Read meanwhile: a process that waits for room in a pipe does nothing else.
    let (output, mut errors) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
    let lines = std::thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).collect());
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        errors.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    std::thread::sleep(after);
    process.kill().unwrap();
    process.wait().unwrap();
    let errors = errors.join().unwrap();
    assert!(!errors.contains("panicked"), "{errors}");
    lines.join().unwrap()
}

/// Files of a directory and those below it, in bytes; copied to another directory, if there is one.
pub(crate) fn files(from: &Path, to: Option<&Path>) -> u64 {
    if let Some(to) = to {
        std::fs::create_dir_all(to).unwrap();
    }
    let entries = std::fs::read_dir(from).unwrap().map(Result::unwrap);
    let bytes = entries.map(|entry| {
        let target = to.map(|to| to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            return files(&entry.path(), target.as_deref());
        }
        target.map(|target| std::fs::copy(entry.path(), target).unwrap());
        entry.metadata().unwrap().len()
    });
    bytes.sum()
}

/// With `PAGEFOLD_KEEP_COPY`: a directory as the killed process has left it, for whoever looks into what the next open makes of it.
pub(crate) fn keep_copy(directory: &Path, copy: &Path) {
    if std::env::var_os("PAGEFOLD_KEEP_COPY").is_some() {
        let _ = std::fs::remove_dir_all(copy);
        files(directory, Some(copy));
    }
}

/// How often each writer has committed, as far as is known.
pub(crate) struct Known(BTreeMap<i64, (i64, i64)>);

impl Known {
    pub(crate) fn new(writers: i64) -> Known {
        Known((0..writers).map(|writer| (writer, (0, 0))).collect())
    }

    /// A writer has said that its commit of this number has succeeded. One that is not `kept` may be gone with the process.
    pub(crate) fn said(&mut self, writer: i64, count: i64, kept: bool) {
        let (least, most) = self.0.get_mut(&writer).expect("a writer");
        *most = count;
        if kept {
            *least = count;
        }
    }

    /// Compares with what is there after the kill; from now on that counts.
    pub(crate) fn compare(&mut self, found: impl Fn(i64) -> i64) {
        for (writer, (least, most)) in &mut self.0 {
            let count = found(*writer);
            // One commit may have succeeded and not been said yet.
            assert!((*least..=*most + 1).contains(&count), "writer {writer} said {least} to {most}, found is {count}");
            (*least, *most) = (count, count);
        }
    }
}
