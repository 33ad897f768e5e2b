//! What is told through `tracing`, to a program that listens.

use pagefold::utility::{Progress, Silent, Unit};
use pagefold::{DataType, Database, Options, TableDefinition};
use std::fmt::{Debug, Write};
use std::sync::{Arc, Barrier, Mutex, MutexGuard};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber, dispatcher};

/// What was told: a line for each span that was begun, has ended, or got fields, and for each event.
#[derive(Default)]
struct Told {
    spans: Vec<String>,
    lines: Vec<String>,
}

#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Told>>);

impl Listener {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap()
    }

    /// The first line that begins so.
    fn line(&self, begin: &str) -> String {
        self.told()
            .lines
            .iter()
            .find(|line| line.starts_with(begin))
            .cloned()
            .unwrap_or_else(|| panic!("no {begin}: {:#?}", self.told().lines))
    }

    fn count(&self, begin: &str) -> usize {
        self.told().lines.iter().filter(|line| line.starts_with(begin)).count()
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "pagefold"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let name = span.metadata().name();
        let mut fields = Fields(format!("begin {name}"));
        span.record(&mut fields);
        let mut told = self.told();
        told.spans.push(name.into());
        told.lines.push(fields.0);
        Id::from_u64(told.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut told = self.told();
        let mut fields = Fields(format!("in {}", told.spans[span.into_u64() as usize - 1]));
        values.record(&mut fields);
        told.lines.push(fields.0);
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(format!("{}", event.metadata().level()));
        event.record(&mut fields);
        self.told().lines.push(fields.0);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}

    fn try_close(&self, span: Id) -> bool {
        let mut told = self.told();
        let line = format!("end {}", told.spans[span.into_u64() as usize - 1]);
        told.lines.push(line);
        true
    }
}

#[test]
fn what_runs_tells_who_listens() {
    let listener = Listener::default();
    let dispatch = Dispatch::new(listener.clone());
    dispatcher::with_default(&dispatch, || {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        {
            let database = Options::default().create(&path).unwrap();
            database.execute("CREATE TABLE t (n INT PRIMARY KEY, secret VARCHAR(40))", ()).unwrap();
            database.execute("INSERT INTO t VALUES ($1, $2), (2, NULL)", (1, "hidden")).unwrap();
            assert_eq!(database.query("SELECT n FROM t", ()).unwrap().len(), 2);
            assert!(database.execute("INSERT INTO t VALUES (1, NULL)", ()).is_err());
            database.engine().checkpoint().unwrap();
            let watched = database.engine().watch("export t", &Silent);
            watched.start("reading", Some(2), Unit::Rows);
            drop(watched);
            // It is left as a crash leaves it.
            std::mem::forget(database);
        }
        let read = Options::default().open_read_only(&path).unwrap();
        assert_eq!(read.query("SELECT n FROM t", ()).unwrap().len(), 2);
    });
    assert_eq!(listener.line("begin statement"), "begin statement text=\"CREATE TABLE t (n INT PRIMARY KEY, secret VARCHAR(40))\"");
    assert_eq!(listener.line("in statement rows=2"), "in statement rows=2");
    assert_eq!(listener.line("in statement sqlstate"), "in statement sqlstate=\"23505\"");
    assert!(listener.line("begin checkpoint").starts_with("begin checkpoint log_bytes="));
    assert_eq!(listener.line("begin utility"), "begin utility name=\"export t\"");
    assert_eq!(listener.line("INFO message=phase"), "INFO message=phase name=\"reading\" total=2 unit=\"rows\"");
    assert!(listener.line("begin recovery").contains(" redo="));
    assert!(listener.line("in recovery records").contains("records="));
    let (begun, ended) = (listener.count("begin "), listener.count("end "));
    assert_eq!(begun, ended, "each span ends: {:#?}", listener.told().lines);
    assert!(listener.told().lines.iter().all(|line| !line.contains("hidden")), "no values of parameters");
}

#[test]
fn a_deadlock_is_told_with_its_victim() {
    let listener = Listener::default();
    let dispatch = Dispatch::new(listener.clone());
    let database = Database::in_memory().unwrap();
    let t = database.begin();
    let table = t.create_table("t", TableDefinition::new().column("n", DataType::Integer).primary_key(["n"])).unwrap();
    (1..=2).for_each(|n| table.insert((n,)).unwrap());
    t.commit().unwrap();
    let both_hold = Barrier::new(2);
    let cross = |first: i32, second: i32| {
        dispatcher::with_default(&dispatch, || {
            let t = database.begin();
            let table = t.table("t").unwrap();
            table.delete((first,)).unwrap();
            both_hold.wait();
            table.delete((second,)).is_err()
        })
    };
    let victims = std::thread::scope(|scope| {
        let one = scope.spawn(|| cross(1, 2));
        usize::from(cross(2, 1)) + usize::from(one.join().unwrap())
    });
    assert_eq!(victims, 1);
    assert!(listener.line("begin lock_wait").contains("resource="));
    assert!(listener.line("WARN message=deadlock victim=").contains("cycle=2"));
    assert_eq!(listener.count("begin lock_wait"), listener.count("end lock_wait"));
}
