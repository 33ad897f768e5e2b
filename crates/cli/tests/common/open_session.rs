//! `pagefold sql` that has the database open while others look at it.

use super::{Place, Run};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

/// A session whose statements have been done, and that goes on.
pub struct OpenSession {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl OpenSession {
    /// Has these statements done.
    pub fn of(place: &Place, statements: &str) -> OpenSession {
        let mut command = place.command(&["sql", "db", "--format", "csv"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut session = OpenSession { child, out };
        session.run(statements);
        session
    }

    /// Has some more done.
    pub fn run(&mut self, statements: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{statements};\nSELECT 'all of it ' || 'is done' AS said;").unwrap();
        let mut line = String::new();
        while !line.contains("all of it is done") {
            line.clear();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "the session has ended in {statements}");
        }
    }

    /// Closes the database.
    pub fn close(mut self) {
        drop(self.child.stdin.take());
        Run::from(self.child.wait_with_output().unwrap()).ok();
    }

    /// Ends it as a crash does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
