//! Settings of a session: SET, SHOW, RESET.

use crate::analytics::When;
use crate::parse::nearest;
use crate::{SqlError, SqlResult};
use pagefold_engine::database::{Durability, Isolation, TransactionOptions};
use sqlparser::ast;
use std::collections::BTreeMap;
use std::time::Duration;

/// Memory of a statement for sorting, groups and joins, where nothing else is said.
const WORK_MEM: usize = 64 << 20;

/// What is known, with what it is.
const KNOWN: [&str; 9] = [
    "analytics",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "lock_timeout",
    "search_path",
    "statement_timeout",
    "synchronous_commit",
    "timezone",
    "work_mem",
];

/// Names that clients set and that change nothing here.
const IGNORED: [&str; 9] = [
    "application_name",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "extra_float_digits",
    "intervalstyle",
    "standard_conforming_strings",
    "bytea_output",
    "idle_in_transaction_session_timeout",
];

/// Does a setting of PostgreSQL, of its planner and its storage, change nothing here?
fn is_ignored(name: &str) -> bool {
    const BEGIN: [&str; 6] = ["enable_", "geqo", "jit", "max_parallel_", "min_parallel_", "parallel_"];
    const OTHERS: [&str; 22] = [
        "check_function_bodies",
        "constraint_exclusion",
        "cursor_tuple_fraction",
        "debug_parallel_query",
        "default_table_access_method",
        "default_tablespace",
        "default_statistics_target",
        "effective_cache_size",
        "effective_io_concurrency",
        "force_parallel_mode",
        "from_collapse_limit",
        "hash_mem_multiplier",
        "join_collapse_limit",
        "lc_messages",
        "maintenance_work_mem",
        "plan_cache_mode",
        "random_page_cost",
        "row_security",
        "seq_page_cost",
        "temp_buffers",
        "xmloption",
        "vacuum_cost_delay",
    ];
    IGNORED.contains(&name) || OTHERS.contains(&name) || BEGIN.iter().any(|begin| name.starts_with(begin)) || is_cost(name)
}

fn is_cost(name: &str) -> bool {
    name.starts_with("cpu_") && name.ends_with("_cost")
}

/// Settings of a session.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) isolation: Isolation,
    pub(crate) read_only: bool,
    pub(crate) durability: Durability,
    pub(crate) lock_timeout: Duration,
    pub(crate) statement_timeout: Option<Duration>,
    pub(crate) work_mem: usize,
    pub(crate) analytics: When,
    others: BTreeMap<String, String>,
    /// Something was set.
    pub(crate) has_changed: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        let options = TransactionOptions::default();
        Settings {
            isolation: options.isolation,
            read_only: false,
            durability: options.durability,
            lock_timeout: options.lock_timeout,
            statement_timeout: None,
            work_mem: WORK_MEM,
            analytics: When::default(),
            others: BTreeMap::new(),
            has_changed: false,
        }
    }
}

impl Settings {
    /// Of a transaction that begins now.
    pub(crate) fn options(&self) -> TransactionOptions {
        TransactionOptions {
            isolation: self.isolation,
            durability: self.durability,
            lock_timeout: self.lock_timeout,
            read_only: self.read_only,
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> SqlResult<()> {
        self.has_changed = true;
        if value.eq_ignore_ascii_case("default") {
            return self.reset(name);
        }
        let wrong = || SqlError::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\""));
        match name {
            "analytics" => {
                self.analytics = match value.to_lowercase().as_str() {
                    "auto" => When::Auto,
                    value => {
                        if truth(value).ok_or_else(wrong)? {
                            When::On
                        } else {
                            When::Off
                        }
                    }
                }
            }
            "default_transaction_isolation" => self.isolation = isolation(value).ok_or_else(wrong)?,
            "default_transaction_read_only" => self.read_only = truth(value).ok_or_else(wrong)?,
            // 0 waits for as long as it takes: a day stands for that.
            "lock_timeout" => {
                let timeout = duration(value).ok_or_else(wrong)?;
                self.lock_timeout = if timeout.is_zero() { Duration::from_secs(86_400) } else { timeout };
            }
            "statement_timeout" => self.statement_timeout = Some(duration(value).ok_or_else(wrong)?).filter(|timeout| !timeout.is_zero()),
            "synchronous_commit" => {
                self.durability = match value.to_lowercase().as_str() {
                    "on" | "true" | "local" | "remote_write" | "remote_apply" | "1" => Durability::Durable,
                    "relaxed" => Durability::Relaxed,
                    "off" | "false" | "0" => Durability::Off,
                    _ => return Err(wrong()),
                }
            }
            "work_mem" => self.work_mem = bytes(value).filter(|bytes| *bytes >= 1 << 10).ok_or_else(wrong)?,
            // Names without a schema are looked for in `public` alone.
            "search_path" if !names_public_alone(value) => {
                return Err(SqlError::unsupported("a search_path with other schemas than public"));
            }
            "timezone" if !["utc", "gmt", "etc/utc", "0"].contains(&value.to_lowercase().as_str()) => {
                return Err(SqlError::unsupported("a time zone but UTC"));
            }
            "search_path" | "timezone" => {}
            name if is_ignored(name) => {
                self.others.insert(name.into(), value.into());
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    pub(crate) fn reset(&mut self, name: &str) -> SqlResult<()> {
        let own = Settings::default();
        match name.to_lowercase().as_str() {
            "all" => *self = own,
            "analytics" => self.analytics = own.analytics,
            "default_transaction_isolation" => self.isolation = own.isolation,
            "default_transaction_read_only" => self.read_only = own.read_only,
            "lock_timeout" => self.lock_timeout = own.lock_timeout,
            "statement_timeout" => self.statement_timeout = own.statement_timeout,
            "synchronous_commit" => self.durability = own.durability,
            "work_mem" => self.work_mem = own.work_mem,
            "search_path" | "timezone" => {}
            name if is_ignored(name) => drop(self.others.remove(name)),
            name => return Err(unknown(name)),
        }
        Ok(())
    }

    pub(crate) fn show(&self, name: &str) -> SqlResult<String> {
        Ok(match name {
            "analytics" => match self.analytics {
                When::Off => "off".into(),
                When::Auto => "auto".into(),
                When::On => "on".into(),
            },
            "default_transaction_isolation" => isolation_name(self.isolation).into(),
            "default_transaction_read_only" => on_off(self.read_only).into(),
            "lock_timeout" => shown(self.lock_timeout.as_millis(), &TIMES),
            "statement_timeout" => shown(self.statement_timeout.unwrap_or_default().as_millis(), &TIMES),
            "synchronous_commit" => match self.durability {
                Durability::Durable => "on".into(),
                Durability::Relaxed => "relaxed".into(),
                Durability::Off => "off".into(),
            },
            "work_mem" => shown((self.work_mem >> 10) as u128, &SIZES),
            "search_path" => "public".into(),
            "timezone" => "UTC".into(),
            "server_version" => concat!("15.0 (pagefold ", env!("CARGO_PKG_VERSION"), ")").into(),
            name => match self.others.get(name) {
                Some(value) => value.clone(),
                None if is_ignored(name) => String::new(),
                None => return Err(unknown(name)),
            },
        })
    }
}

fn unknown(name: &str) -> SqlError {
    let error = SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\""));
    match nearest(name, KNOWN.into_iter()) {
        Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
        None => error.with_hint(format!("There are: {}.", KNOWN.join(", "))),
    }
}

pub(crate) fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadCommitted => "read committed",
        Isolation::RepeatableRead => "repeatable read",
        Isolation::Serializable => "serializable",
    }
}

fn isolation(value: &str) -> Option<Isolation> {
    match value.to_lowercase().as_str() {
        "read committed" | "read uncommitted" => Some(Isolation::ReadCommitted),
        "repeatable read" => Some(Isolation::RepeatableRead),
        "serializable" => Some(Isolation::Serializable),
        _ => None,
    }
}

fn truth(value: &str) -> Option<bool> {
    match value.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

fn on_off(truth: bool) -> &'static str {
    if truth { "on" } else { "off" }
}

/// Units, and how many of the one before each is.
const TIMES: [(&str, u128); 5] = [("ms", 1), ("s", 1_000), ("min", 60), ("h", 60), ("d", 24)];
const SIZES: [(&str, u128); 4] = [("kB", 1), ("MB", 1_024), ("GB", 1_024), ("TB", 1_024)];

/// A number in the largest unit in which it is whole, as PostgreSQL shows it.
fn shown(mut number: u128, units: &[(&str, u128)]) -> String {
    if number == 0 {
        return "0".into();
    }
    let mut unit = "";
    for (name, factor) in units {
        if !number.is_multiple_of(*factor) {
            break;
        }
        number /= factor;
        unit = name;
    }
    format!("{number}{unit}")
}

/// A number with a unit.
fn split_unit(value: &str) -> Option<(f64, String)> {
    let at = value.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(value.len());
    let number: f64 = value[..at].trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then(|| (number, value[at..].trim().to_lowercase()))
}

/// Milliseconds, where no unit is said.
fn duration(value: &str) -> Option<Duration> {
    let (number, unit) = split_unit(value)?;
    let milliseconds = match unit.as_str() {
        "" | "ms" => 1.0,
        "us" => 0.001,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * milliseconds / 1000.0).ok().filter(|duration| *duration < Duration::from_secs(1 << 31))
}

/// Kilobytes, where no unit is said, as in PostgreSQL.
fn bytes(value: &str) -> Option<usize> {
    let (number, unit) = split_unit(value)?;
    let shift = match unit.as_str() {
        "b" => 0,
        "" | "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        _ => return None,
    };
    let bytes = number * f64::from(1_u32 << shift);
    (bytes <= (1_u64 << 46) as f64).then_some(bytes as usize)
}

/// The value of SET as text.
pub(crate) fn text_of(value: &ast::Expr) -> String {
    match value {
        ast::Expr::Value(value) => crate::bind::string(&value.value).unwrap_or_else(|| value.value.to_string()),
        other => other.to_string().trim_matches('"').to_owned(),
    }
}

/// Is `public` the only schema that is named? Those of PostgreSQL's own, and of the user, do not count.
fn names_public_alone(search_path: &str) -> bool {
    let names = search_path.split(',').map(|name| name.trim().trim_matches(['"', '\'']));
    let mut own = names.filter(|name| !matches!(*name, "$user" | "pg_catalog" | "pg_temp"));
    own.next() == Some("public") && own.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(duration("1500"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("2s"), Some(Duration::from_secs(2)));
        assert_eq!(duration("-1"), None);
        assert_eq!(bytes("4MB"), Some(4 << 20));
        assert_eq!(bytes("64"), Some(64 << 10));
        assert_eq!(bytes("x"), None);
    }

    #[test]
    fn what_is_set_is_shown_and_reset() {
        let mut settings = Settings::default();
        settings.set("work_mem", "1MB").unwrap();
        assert_eq!(settings.show("work_mem").unwrap(), "1MB");
        settings.reset("work_mem").unwrap();
        assert_eq!(settings.show("work_mem").unwrap(), "64MB");
        settings.set("statement_timeout", "1500").unwrap();
        assert_eq!(settings.show("statement_timeout").unwrap(), "1500ms");
        settings.set("statement_timeout", "120s").unwrap();
        assert_eq!(settings.show("statement_timeout").unwrap(), "2min");
        settings.set("statement_timeout", "0").unwrap();
        assert_eq!(settings.show("statement_timeout").unwrap(), "0");
        let error = settings.set("wrk_mem", "1MB").unwrap_err();
        assert_eq!((error.sqlstate(), error.hint()), ("42704", Some("Perhaps you meant \"work_mem\".")));
        assert_eq!(settings.set("timezone", "Europe/Berlin").unwrap_err().sqlstate(), "0A000");
    }
}
