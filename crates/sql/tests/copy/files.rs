//! COPY with files, through the storage of the database.

use super::{count, run};
use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OpenOptions, OsClock, Storage, read_file};
use pagefold_sql::{Database, Session};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn opened() -> (Arc<MemoryStorage>, Session) {
    let storage = Arc::new(MemoryStorage::new());
    let engine =
        Engine::open(Arc::clone(&storage) as _, Arc::new(OsClock), Path::new("db"), OpenMode::Create, Settings::default()).unwrap();
    let mut session = Database::new(Arc::new(engine)).session();
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)");
    (storage, session)
}

fn text(storage: &MemoryStorage, name: &str) -> String {
    String::from_utf8(read_file(storage, Path::new(name), 1 << 20).unwrap()).unwrap()
}

fn outside(storage: &MemoryStorage) -> Vec<PathBuf> {
    storage.list(Path::new("")).unwrap().into_iter().filter(|path| path != Path::new("db")).collect()
}

#[test]
fn files_go_through_the_storage() {
    let (storage, mut session) = opened();
    run(&mut session, "INSERT INTO t VALUES (1, 'a'), (2, NULL)");
    let answer = session.execute("COPY t TO 'out.csv' (FORMAT csv, HEADER)", &[]).unwrap();
    assert_eq!((answer.count(), answer.tag().unwrap()), (2, "COPY 2".to_owned()));
    assert_eq!(text(&storage, "out.csv"), "id,x\n1,a\n2,\n");
    run(&mut session, "DELETE FROM t");
    let answer = session.execute("COPY t FROM 'out.csv' (FORMAT csv, HEADER)", &[]).unwrap();
    assert_eq!(answer.tag().unwrap(), "COPY 2");
    assert_eq!(count(&mut session, "t"), 2);
    // A shorter one in its place.
    run(&mut session, "COPY (SELECT 1) TO 'out.csv'");
    assert_eq!(text(&storage, "out.csv"), "1\n");
    assert_eq!(outside(&storage), [Path::new("out.csv")]);
}

#[test]
fn a_file_that_fails_stays_as_it_was() {
    let (storage, mut session) = opened();
    run(&mut session, "COPY (SELECT 'before') TO 'out'");
    for sql in [
        "COPY (SELECT 1 / (x - 3) FROM generate_series(1, 5) AS s(x)) TO 'out'",
        "COPY (SELECT 1 / (x - 3) FROM generate_series(1, 5) AS s(x)) TO 'new'",
    ] {
        let error = session.execute(sql, &[]).map(drop).unwrap_err();
        assert_eq!(error.sqlstate(), "22012", "{error}");
    }
    assert_eq!((text(&storage, "out").as_str(), outside(&storage)), ("before\n", vec![PathBuf::from("out")]));
    for (sql, sqlstate) in [
        ("COPY t FROM 'none'", "58P01"),
        ("COPY t FROM 'db'", "42809"),
        ("COPY t TO 'db'", "42501"),
        ("COPY t TO 'db/control'", "42501"),
        ("COPY t TO 'x/../db/data/y'", "42501"),
        ("COPY t TO '/dev/null'", "42809"),
        ("COPY t TO 'none/out'", "58P01"),
        ("COPY t TO ''", "42809"),
        ("COPY t TO '..'", "42809"),
    ] {
        let error = session.execute(sql, &[]).map(drop).unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate, "{sql}: {error}");
    }
    let file = storage.open(Path::new("bad"), &OpenOptions::create()).unwrap();
    file.write_at(b"1\ta\n2\tb\n1\tc\n", 0).unwrap();
    let error = session.execute("COPY t FROM 'bad'", &[]).map(drop).unwrap_err();
    assert_eq!((error.sqlstate(), error.context()), ("23505", Some("COPY t, line 3")));
    assert_eq!(count(&mut session, "t"), 0);
}
