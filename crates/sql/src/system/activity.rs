//! What the database does at this moment: pools and counters, transactions and their locks, the log, utilities, and the statements of sessions. Others go on meanwhile, so what belongs together may
//! have been read at two moments.

use super::{FRACTION, NUMBER, Rows, Seen, SystemTable, TRUTH, number, text, text_or_null};
use crate::SqlResult;
use crate::bind::TEXT;
use crate::sessions::SessionNow;
use pagefold_engine::CounterValues;
use pagefold_engine::database::{LockActivity, LockKind, TransactionActivity};
use pagefold_types::Value;
use std::time::Duration;

/// So many locks are listed at most, and as many waits.
const LOCKS_MAX: usize = 100_000;

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        name: "pagefold_pools",
        columns: &[
            ("pool_name", TEXT),
            ("frame_bytes", NUMBER),
            ("limit_bytes", NUMBER),
            ("used_bytes", NUMBER),
            ("getpages", NUMBER),
            ("hit_ratio", FRACTION),
            ("pages_written", NUMBER),
            ("expansions", NUMBER),
        ],
        rows: pools,
    },
    SystemTable {
        name: "pagefold_counters",
        columns: &[("object_type", TEXT), ("object_name", TEXT), ("counter", TEXT), ("value", NUMBER)],
        rows: counters,
    },
    SystemTable {
        name: "pagefold_transactions",
        columns: &[("transaction_id", NUMBER), ("age_seconds", FRACTION), ("locks", NUMBER), ("waits_for", NUMBER), ("is_own", TRUTH)],
        rows: transactions,
    },
    SystemTable {
        name: "pagefold_locks",
        columns: &[
            ("transaction_id", NUMBER),
            ("lock_type", TEXT),
            ("object_name", TEXT),
            ("row_id", TEXT),
            ("mode", TEXT),
            ("is_granted", TRUTH),
            ("waits_for", NUMBER),
        ],
        rows: locks,
    },
    SystemTable {
        name: "pagefold_log",
        columns: &[
            ("end_position", NUMBER),
            ("since_checkpoint_bytes", NUMBER),
            ("checkpoint_bytes", NUMBER),
            ("checkpoints", NUMBER),
            ("commits", NUMBER),
            ("version_bytes", NUMBER),
            ("version_file_bytes", NUMBER),
            ("oldest_snapshot_seconds", FRACTION),
            ("oldest_snapshot_commits", NUMBER),
            ("open_files", NUMBER),
        ],
        rows: log,
    },
    SystemTable {
        name: "pagefold_utilities",
        columns: &[("utility", TEXT), ("phase", TEXT), ("done", NUMBER), ("total", NUMBER), ("unit", TEXT), ("seconds", FRACTION)],
        rows: utilities,
    },
    SystemTable {
        name: "pagefold_statements",
        columns: &[
            ("session_id", NUMBER),
            ("transaction_id", NUMBER),
            ("state", TEXT),
            ("seconds", FRACTION),
            ("statements", NUMBER),
            ("statement", TEXT),
            ("is_own", TRUTH),
        ],
        rows: statements,
    },
];

fn seconds(time: Duration) -> Value {
    Value::Double(time.as_secs_f64())
}

fn number_or_null(value: Option<u64>) -> Value {
    value.map_or(Value::Null, number)
}

/// NULL where nothing was asked for.
fn hit_ratio(counters: &CounterValues) -> Value {
    match counters.getpages {
        0 => Value::Null,
        getpages => Value::Double(counters.hits() as f64 / getpages as f64),
    }
}

fn pools(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let pools = seen.database.engine().pool_activity().into_iter();
    let row = pools.map(|pool| {
        vec![
            text(&pool.name),
            number(pool.frame_bytes),
            number(pool.limit_bytes),
            number(pool.used_bytes),
            number(pool.counters.getpages),
            hit_ratio(&pool.counters),
            number(pool.counters.pages_written),
            number(pool.counters.expansions),
        ]
    });
    Ok(row.collect())
}

fn counters(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let engine = seen.database.engine();
    let pools = engine.pool_activity().into_iter().map(|pool| ("pool", pool.name, pool.counters));
    let kind = |is_index| if is_index { "index" } else { "table" };
    let objects = engine.object_activity().into_iter().map(|object| (kind(object.is_index), object.name, object.counters));
    let mut rows = vec![vec![text("sql"), text("analytics"), text("statements"), number(seen.database.analytics_statements())]];
    for (kind, name, counters) in pools.chain(objects) {
        rows.extend(counters.fields().into_iter().map(|(counter, value)| vec![text(kind), text(&name), text(counter), number(value)]));
    }
    Ok(rows)
}

fn transactions(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let engine = seen.database.engine();
    let own = seen.transaction.id();
    let waits = engine.wait_activity(LOCKS_MAX);
    let row = |transaction: TransactionActivity| {
        let waits_for = waits.iter().find(|wait| wait.transaction == transaction.id).and_then(|wait| wait.waits_for);
        vec![
            number(transaction.id),
            seconds(transaction.age),
            number(transaction.locks),
            number_or_null(waits_for),
            Value::Boolean(transaction.id == own),
        ]
    };
    Ok(engine.transaction_activity().into_iter().map(row).collect())
}

fn locks(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let engine = seen.database.engine();
    let row = |lock: LockActivity| {
        let (kind, rid) = match lock.kind {
            LockKind::Table => ("table", None),
            LockKind::Index => ("index", None),
            LockKind::Key => ("key", None),
            LockKind::Reference => ("reference", None),
            LockKind::Row(rid) => ("row", Some(format!("{}:{}:{}", rid.partition(), rid.page(), rid.slot()))),
        };
        vec![
            number(lock.transaction),
            text(kind),
            text_or_null(lock.object.as_deref()),
            text_or_null(rid.as_deref()),
            text(lock.mode.name()),
            Value::Boolean(lock.waits_for.is_none()),
            number_or_null(lock.waits_for),
        ]
    };
    Ok(engine.lock_activity(LOCKS_MAX).into_iter().chain(engine.wait_activity(LOCKS_MAX)).map(row).collect())
}

fn log(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let log = seen.database.engine().log_activity();
    Ok(vec![vec![
        number(log.end_bytes),
        number(log.since_checkpoint_bytes),
        number(log.checkpoint_bytes),
        number(log.checkpoints),
        number(log.commits),
        number(log.version_bytes),
        number(log.version_file_bytes),
        seconds(log.oldest_snapshot_age),
        number(log.oldest_snapshot_commits),
        number(log.open_files),
    ]])
}

fn utilities(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let running = seen.database.engine().utility_activity().into_iter();
    let row = running.map(|utility| {
        vec![
            text(&utility.name),
            text(&utility.phase),
            number(utility.done),
            number_or_null(utility.total),
            text(utility.unit),
            seconds(utility.elapsed),
        ]
    });
    Ok(row.collect())
}

fn statements(seen: &mut Seen<'_>) -> SqlResult<Rows> {
    let own = seen.transaction.id();
    let row = |session: SessionNow| {
        let state = match (session.is_running, session.transaction) {
            (true, _) => "running",
            (false, Some(_)) => "idle in transaction",
            (false, None) => "idle",
        };
        vec![
            number(session.id),
            number_or_null(session.transaction),
            text(state),
            session.statement.as_ref().map_or(Value::Null, |(_, since)| seconds(*since)),
            number(session.statements),
            session.statement.as_ref().map_or(Value::Null, |(statement, _)| text(statement)),
            Value::Boolean(session.transaction == Some(own)),
        ]
    };
    Ok(seen.database.sessions(seen.clock).into_iter().map(row).collect())
}
