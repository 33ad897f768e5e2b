//! Utilities in a session: names are looked up, then whoever knows how runs it.
//!
//! Invariants:
//! - no transaction of the session is open while a utility runs: it would wait for itself;
//! - a utility ends with the statement: when it is cancelled, or its time is up.

use super::transaction::unix_micros;
use super::{Done, Session, TransactionState};
use crate::bind::Output;
use crate::catalog::{self, Found, TableRef};
use crate::copy::file::outside;
use crate::define::partition::{limit_values, partition_name as made_name};
use crate::execute::Limits;
use crate::expression::Now;
use crate::parse::{At, identifier, object_name, quoted_where_needed};
use crate::partition_names::beside;
use crate::utility::options::{self, Given};
use crate::utility::statement::{Asked, Object, UtilityStatement};
use crate::utility::{Portion, Utility, Wanted};
use crate::{SqlError, SqlResult};
use pagefold_engine::database::{Database, Transaction, partition_name, split_partition_name};
use pagefold_engine::{Error, Progress, Silent, Unit};
use pagefold_types::Value;
use pagefold_types::text::to_text;
use sqlparser::ast::{Expr, Ident, ObjectName, Spanned};
use std::sync::Arc;

/// Pages that ESTIMATE and ADVISE look at, if nothing is said.
const SAMPLE_PAGES: u64 = 400;

/// Who is told how far utilities are.
#[derive(Clone)]
pub(super) struct Watcher(pub(super) Arc<dyn Progress + Send>);

impl Default for Watcher {
    fn default() -> Watcher {
        Watcher(Arc::new(Silent))
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}

/// Tells the watcher, and stops with the statement.
struct Watched<'a> {
    watcher: &'a dyn Progress,
    limits: Limits,
}

impl Progress for Watched<'_> {
    fn start(&self, phase: &str, total: Option<u64>, unit: Unit) {
        self.watcher.start(phase, total, unit);
    }

    fn advance(&self, n: u64) {
        self.watcher.advance(n);
    }

    fn finish(&self) {
        self.watcher.finish();
    }

    fn interrupted(&self) -> bool {
        self.watcher.interrupted() || self.limits.check().is_err()
    }
}

impl Session {
    /// Tells `watcher` how far utilities are that this session runs. When it says that it is interrupted, they stop.
    pub fn watch_utilities(&mut self, watcher: Arc<dyn Progress + Send>) {
        self.watcher = Watcher(watcher);
    }

    pub(super) fn utility(&mut self, statement: &UtilityStatement) -> SqlResult<Done> {
        let name = statement.name;
        if self.transaction_state() != TransactionState::None {
            return Err(SqlError::new("25001", format!("{name} cannot run inside a transaction block")));
        }
        let engine = Arc::clone(self.database.engine());
        let now = unix_micros(self.clock.as_ref());
        let now = Now { transaction: now, statement: now };
        let utility = self.look(|transaction| Names { engine: &engine, transaction, now }.looked_up(statement))??;
        if utility.changes() && self.settings.read_only {
            return Err(SqlError::new("25006", format!("cannot execute {name} in a read-only transaction")));
        }
        let utility = self.with_places(utility)?;
        let Some(utilities) = self.database.utilities() else {
            let error = SqlError::new("0A000", format!("{name} is not part of this build"));
            return Err(error.with_hint("The crate pagefold has the utilities with its feature \"arrow\"."));
        };
        self.plans.forget_all();
        let watched = Watched { watcher: self.watcher.0.as_ref(), limits: self.limits() };
        let answer = match utilities.run(self.database.engine(), &utility, &watched) {
            // Why it was stopped, where that is known.
            Err(error) if error.sqlstate() == "57014" => return Err(watched.limits.check().err().unwrap_or(error)),
            done => done?,
        };
        // What only tells something may see too late that nobody wants to know it.
        if !utility.changes() && !matches!(utility, Utility::Backup { .. }) {
            watched.limits.check()?;
        }
        let columns = answer.columns.into_iter().map(|(name, data_type)| Output { name: name.into(), data_type }).collect();
        Ok(Done { tag: name.into(), rows: Some((columns, answer.rows)) })
    }

    /// Files are not in the directory of the database.
    fn with_places(&self, utility: Utility) -> SqlResult<Utility> {
        let Utility::Backup { file, tables, base } = utility else { return Ok(utility) };
        let engine = self.database.engine();
        let name = file.to_string_lossy();
        let path = outside(engine, &name)?;
        if engine.outside().exists(&path).map_err(Error::from)? {
            return Err(SqlError::new("58P02", format!("file \"{name}\" already exists")));
        }
        Ok(Utility::Backup { file: path, tables, base })
    }
}

/// Finds what a statement names.
struct Names<'a> {
    engine: &'a Database,
    transaction: &'a mut Transaction<'static>,
    now: Now,
}

impl Names<'_> {
    /// The same with the names of objects that there are.
    fn looked_up(&mut self, statement: &UtilityStatement) -> SqlResult<Utility> {
        let given: &[Given] = &statement.options;
        let name = statement.name;
        let some_pages = Portion::Pages(SAMPLE_PAGES);
        Ok(match &statement.asked {
            Asked::Analyze { is_verbose, tables } => {
                Utility::Analyze { tables: self.tables(tables)?, portion: options::portion(given, Portion::All)?, is_verbose: *is_verbose }
            }
            Asked::Reorg(object) => {
                let is_index = matches!(object, Object::Index(_));
                let (own, wishes) = (self.object(object)?, options::reorg(given, is_index)?);
                if wishes.method == Some(Wanted::Auto) || wishes.format == Some(Wanted::Auto) {
                    self.refuse_divided(&own, "REORG of several partitions, which may want different ones, with auto")?;
                }
                Utility::Reorg { object: own, wishes }
            }
            Asked::Reindex(object) => {
                options::none(given, name)?;
                Utility::Reindex { indexes: self.indexes(object)? }
            }
            Asked::Check => {
                options::none(given, name)?;
                Utility::Check
            }
            Asked::Estimate(object) => {
                let (own, portion) = (self.object(object)?, options::portion(given, some_pages)?);
                self.refuse_divided(&own, "ESTIMATE of several partitions")?;
                match object {
                    Object::Table(..) => Utility::EstimateTable { table: own, portion },
                    Object::Index(_) => Utility::EstimateIndex { index: own, portion },
                }
            }
            Asked::EstimateNewIndex { table, columns, unique } => {
                let table = self.table(table)?;
                self.refuse_divided(&table.name, "ESTIMATE of several partitions")?;
                let column = |(name, direction): &(Ident, _)| {
                    let at = crate::bind::change::column_of(&table, name)?;
                    Ok((table.schema.columns()[at].name.clone(), *direction))
                };
                Utility::EstimateNewIndex {
                    table: table.name.clone(),
                    columns: columns.iter().map(column).collect::<SqlResult<_>>()?,
                    unique: *unique,
                    portion: options::portion(given, some_pages)?,
                }
            }
            Asked::Advise { objects } => {
                let name = |written: &ObjectName| {
                    let name = object_name(written)?;
                    if self.is_index(&name)? { Ok(name) } else { self.table(written).map(|table| table.name.clone()) }
                };
                Utility::Advise {
                    objects: objects.iter().map(name).collect::<SqlResult<_>>()?,
                    portion: options::portion(given, some_pages)?,
                }
            }
            Asked::Split { table, partition, at, into } => {
                let table = self.divided(table)?;
                let partition = self.partition(&table, partition)?;
                let whole = self.transaction.partitioned_table(&table.name)?;
                let (attributes, columns) = (table.first().table.attributes().clone(), whole.columns().to_vec());
                let limit: Vec<&Expr> = at.iter().collect();
                let values = limit_values(self.transaction, self.now, ("AT", &limit), &attributes, &columns)?;
                let as_text = |(value, column): (&Option<Value>, &usize)| {
                    value.as_ref().map(|value| to_text(value.as_ref(), &attributes.schema.columns()[*column].data_type))
                };
                let into = [self.new_partition(&table, &into[0], &[&partition])?, self.new_partition(&table, &into[1], &[&partition])?];
                Utility::SplitPartition {
                    partition,
                    at: values.iter().zip(&columns).map(as_text).collect(),
                    into,
                    table: table.name.clone(),
                }
            }
            Asked::Merge { table, partitions, into } => {
                let table = self.divided(table)?;
                let partitions =
                    partitions.iter().map(|partition| self.partition(&table, partition)).collect::<SqlResult<Vec<String>>>()?;
                let replaced: Vec<&String> = partitions.iter().collect();
                Utility::MergePartitions { into: self.new_partition(&table, into, &replaced)?, partitions, table: table.name.clone() }
            }
            Asked::Backup { tables, file } => {
                let base = options::base(given)?.map(Into::into);
                Utility::Backup { file: file.into(), tables: self.tables(tables)?, base }
            }
        })
    }

    /// A table, whosesoever: utilities change nothing that a statement sees.
    fn table(&mut self, written: &ObjectName) -> SqlResult<Arc<TableRef>> {
        let name = object_name(written)?;
        let found = match catalog::find(self.transaction, &name) {
            Ok(Found::Table(table)) => Ok(table),
            Ok(Found::View(_)) => Err(SqlError::new("42809", format!("\"{name}\" is a view, not a table"))),
            Err(_) if self.is_index(&name)? => Err(SqlError::new("42809", format!("\"{name}\" is an index, not a table"))),
            Err(error) => Err(error),
        };
        found.at_span(written.span())
    }

    fn tables(&mut self, names: &[ObjectName]) -> SqlResult<Vec<String>> {
        names.iter().map(|name| self.table(name).map(|table| table.name.clone())).collect()
    }

    /// Refuses what is done for one partition at a time, or for its part of an index.
    fn refuse_divided(&self, name: &str, what: &str) -> SqlResult<()> {
        let refused =
            |part: &str, hint: String| Err(SqlError::unsupported(what).with_detail(format!("\"{name}\" has {part}.")).with_hint(hint));
        if let Ok(table) = self.engine.partitioned_table(name) {
            let first = table.partitions().first().map_or("p", |partition| partition.name());
            return refused(
                "partitions",
                format!("Name one: TABLE {} PARTITION {}.", quoted_where_needed(name), quoted_where_needed(first)),
            );
        }
        if let Some((_, parts)) = self.engine.partitioned_index(name)? {
            let first = parts.first().map_or("", String::as_str);
            return refused("a part in each partition", format!("Name one: INDEX {}.", quoted_where_needed(first)));
        }
        Ok(())
    }

    /// Is there an index of this name? Also one that each partition has a part of.
    fn is_index(&mut self, name: &str) -> SqlResult<bool> {
        match self.transaction.index(name) {
            Ok(_) => return Ok(true),
            Err(Error::Unknown { .. } | Error::Stale { .. }) => {}
            Err(error) if error.is_damage() => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        Ok(self.engine.partitioned_index(name)?.is_some())
    }

    fn index(&mut self, written: &ObjectName) -> SqlResult<String> {
        let name = object_name(written)?;
        if self.is_index(&name)? {
            return Ok(name);
        }
        let error = match catalog::find_if_any(self.transaction, &name)? {
            Some(_) => SqlError::new("42809", format!("\"{name}\" is not an index")),
            None => SqlError::new("42704", format!("index \"{name}\" does not exist")),
        };
        Err(error.at_span(written.span()))
    }

    fn object(&mut self, object: &Object) -> SqlResult<String> {
        let (table, partition) = match object {
            Object::Index(name) => return self.index(name),
            Object::Table(table, partition) => (self.table(table)?, partition),
        };
        match partition {
            Some(partition) => Ok(partition_name(&table.name, &self.partition(&table, partition)?)),
            None => Ok(table.name.clone()),
        }
    }

    /// The name of a partition that a table has.
    fn partition(&self, table: &TableRef, partition: &Ident) -> SqlResult<String> {
        let name = identifier(partition);
        let parts = table.part_names();
        match parts.iter().any(|part| table.is_divided() && split_partition_name(part).is_some_and(|(_, own)| own == name)) {
            true => Ok(name),
            false => {
                let error = SqlError::new("42P01", format!("partition \"{name}\" of table \"{}\" does not exist", table.name));
                Err(error.at_span(partition.span))
            }
        }
    }

    /// The name of a partition that is to be made in the place of others. That of a table which was made before its partitions is one of a relation.
    fn new_partition(&mut self, table: &TableRef, partition: &Ident, replaced: &[&String]) -> SqlResult<String> {
        let name = made_name(partition)?;
        let relation = beside(&table.name, &name);
        match table.is_open() && !replaced.contains(&&name) && catalog::is_relation(self.transaction, &relation) {
            true => Err(SqlError::new("42P07", format!("relation \"{relation}\" already exists")).at_span(partition.span)),
            false => Ok(name),
        }
    }

    /// A table that has partitions.
    fn divided(&mut self, written: &ObjectName) -> SqlResult<Arc<TableRef>> {
        let table = self.table(written)?;
        match table.is_divided() {
            true => Ok(table),
            false => Err(SqlError::new("42809", format!("table \"{}\" is not partitioned", table.name)).at_span(written.span())),
        }
    }

    /// The indexes of a table, of all its partitions; or one, of all its parts.
    fn indexes(&mut self, object: &Object) -> SqlResult<Vec<String>> {
        let table = match object {
            Object::Index(name) => {
                let name = self.index(name)?;
                let parts = self.engine.partitioned_index(&name)?;
                return Ok(parts.map_or_else(|| vec![name], |(_, parts)| parts));
            }
            Object::Table(table, _) => self.table(table)?,
        };
        let wanted = self.object(object)?;
        let mut found = Vec::new();
        for at in 0..table.parts.len() {
            if wanted == table.name || table.part_names()[at] == wanted {
                let indexes = table.part(at)?.table.all_indexes();
                found.extend(indexes.iter().map(|index| index.name().to_owned()));
            }
        }
        Ok(found)
    }
}
