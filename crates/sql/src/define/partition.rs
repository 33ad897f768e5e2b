//! PARTITION BY RANGE, and partitions that come, go and are exchanged.

use super::dependents::Going;
use super::options;
use super::{Defining, bound, check_plain, taken};
use crate::catalog::{TableRef, is_relation, refuse_system};
use crate::expression::{Env, Now};
use crate::parse::{identifier, object_name};
use crate::partition_names::beside;
use crate::partitioning::{Mark, arguments};
use crate::print::printed;
use crate::temporary::is_temporary;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::{PartitionSpec, Transaction, limit_key};
use pagefold_engine::table_space::TableAttributes;
use pagefold_types::{Column, Value, ValueRef};
use sqlparser::ast;

const HINT: &str = "PARTITION BY RANGE (day) (PARTITION q1 VALUES LESS THAN ('2024-04-01'), PARTITION rest VALUES LESS THAN (MAXVALUE))";

/// What PARTITION BY says: names of columns, and the partitions.
pub(super) struct Division<'a> {
    pub(super) columns: Vec<&'a ast::Ident>,
    parts: Vec<Vec<&'a ast::Expr>>,
}

/// Reads PARTITION BY.
pub(super) fn division(by: &ast::Expr) -> SqlResult<Division<'_>> {
    let ast::Expr::Function(function) = by else { return Err(SqlError::unsupported(format!("PARTITION BY {by}")).with_hint(HINT)) };
    if !function.name.to_string().eq_ignore_ascii_case("range") {
        return Err(SqlError::unsupported(format!("PARTITION BY {}", function.name)).with_hint(HINT));
    }
    let mut division = Division { columns: Vec::new(), parts: Vec::new() };
    for argument in arguments(function) {
        match (Mark::of(argument), argument) {
            (Some((Mark::Part, arguments)), _) => division.parts.push(arguments),
            (None, ast::Expr::Identifier(name)) => division.columns.push(name),
            _ => return Err(SqlError::unsupported(format!("PARTITION BY RANGE of the expression {argument}"))),
        }
    }
    match division.columns.is_empty() {
        true => Err(SqlError::syntax("a table is divided by at least one column").with_hint(HINT)),
        false => Ok(division),
    }
}

/// The expressions of a list in parentheses.
pub(super) fn listed(expr: &ast::Expr) -> Vec<&ast::Expr> {
    match expr {
        ast::Expr::Tuple(all) => all.iter().collect(),
        ast::Expr::Nested(one) => vec![one],
        other => vec![other],
    }
}

/// The name of a partition that is to be made. It becomes part of that of a table, which has neither points nor more slashes.
pub(crate) fn partition_name(name: &ast::Ident) -> SqlResult<String> {
    let name = identifier(name);
    check_plain(&name)?;
    refuse_system(&name).map(|()| name)
}

/// The values of a limit, which is `what`; `None` is MAXVALUE.
pub(crate) fn limit_values(
    transaction: &mut Transaction<'static>,
    now: Now,
    (what, limit): (&str, &[&ast::Expr]),
    attributes: &TableAttributes,
    columns: &[usize],
) -> SqlResult<Vec<Option<Value>>> {
    if limit.len() > columns.len() {
        let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let (given, wanted) = (count(limit.len(), "value"), count(columns.len(), "column"));
        return Err(SqlError::new("42P16", format!("{what} has {given}, and the table is divided by {wanted}")));
    }
    let mut values = Vec::with_capacity(limit.len());
    for (expr, column) in limit.iter().zip(columns) {
        if matches!(expr, ast::Expr::Identifier(name) if identifier(name) == "maxvalue") {
            values.push(None);
            continue;
        }
        match limit_value(transaction, now, expr, &attributes.schema.columns()[*column])? {
            Value::Null => return Err(SqlError::new("42P16", "a limit of a partition is NULL")),
            value => values.push(Some(value)),
        }
    }
    Ok(values)
}

/// A value of a limit, which may be NULL.
pub(super) fn limit_value(transaction: &mut Transaction<'static>, now: Now, expr: &ast::Expr, column: &Column) -> SqlResult<Value> {
    let said = printed(expr)?;
    let (expr, is_said) = bound(transaction, |binder| binder.limit_expression(&said, &column.data_type, &column.name))?;
    let env = Env { now, ..Env::EMPTY };
    let value = expr.evaluate(&env)?;
    if value != Value::Null && is_said.evaluate(&env)? == Value::Boolean(false) {
        let message = format!("the limit {said} is no value of column \"{}\", which is {}", column.name, column.data_type);
        return Err(SqlError::new("22023", message).with_hint("A limit is not rounded: it would be another one."));
    }
    Ok(value)
}

/// What a partition has otherwise than the table.
pub(super) fn set_storage(spec: &mut PartitionSpec, attributes: &TableAttributes, parameters: &[(String, String)]) -> SqlResult<()> {
    if let Some((name, _)) = parameters.iter().find(|(name, _)| !options::is_of_partition(name)) {
        return Err(options::unknown(name, "compress, page_size"));
    }
    let own = options::of_table(attributes.clone(), parameters)?;
    spec.method = (own.method != attributes.method).then_some(own.method);
    spec.page_bytes = (own.page_bytes != attributes.page_bytes).then_some(own.page_bytes);
    Ok(())
}

impl Defining<'_> {
    /// The partitions of a table that is made.
    pub(super) fn partitions(
        &mut self,
        division: &Division<'_>,
        attributes: &TableAttributes,
        columns: &[usize],
    ) -> SqlResult<Vec<PartitionSpec>> {
        if division.parts.is_empty() {
            if is_temporary(&attributes.name) {
                return Err(SqlError::unsupported("a temporary divided table without partitions").with_hint(HINT));
            }
            return Ok(vec![PartitionSpec::template()]);
        }
        division.parts.iter().map(|part| self.partition(part, attributes, columns)).collect()
    }

    fn partition(&mut self, part: &[&ast::Expr], attributes: &TableAttributes, columns: &[usize]) -> SqlResult<PartitionSpec> {
        let [ast::Expr::Identifier(name), limit, parameters @ ..] = part else {
            return Err(SqlError::syntax("no partition").with_hint(HINT));
        };
        let mut spec =
            PartitionSpec { name: partition_name(name)?, limit: self.limit(limit, attributes, columns)?, ..PartitionSpec::default() };
        let parameters: Vec<ast::Expr> = parameters.iter().flat_map(|list| listed(list)).cloned().collect();
        set_storage(&mut spec, attributes, &options::index_pairs(&parameters)?)?;
        Ok(spec)
    }

    fn limit(&mut self, limit: &ast::Expr, attributes: &TableAttributes, columns: &[usize]) -> SqlResult<Option<Vec<u8>>> {
        let values = limit_values(self.transaction, self.run.now, ("a limit", &listed(limit)), attributes, columns)?;
        let values: Vec<Option<ValueRef<'_>>> = values.iter().map(|value| value.as_ref().map(Value::as_ref)).collect();
        Ok(limit_key(attributes, columns, &values)?)
    }

    /// ALTER TABLE ... ADD, ROTATE or EXCHANGE PARTITION.
    pub(super) fn alter_partition(&mut self, table: &TableRef, change: &ast::Expr) -> SqlResult<()> {
        let Some((mark, arguments)) = Mark::of(change) else {
            return Err(SqlError::unsupported(format!("ALTER TABLE ... ADD PARTITION ({change})")));
        };
        match (mark, arguments.as_slice()) {
            (Mark::Attach, [name, bounds @ ..]) => return self.attach_partition(table, name, bounds),
            (Mark::Detach, [name]) => return self.detach_partition(table, name),
            _ => refuse_undivided(table)?,
        }
        match (mark, arguments.as_slice()) {
            (Mark::Exchange, [ast::Expr::Identifier(partition), with]) => {
                let with = TableRef::find(self.transaction, &object_name(&relation(with)?)?)?;
                with.refuse_partition("EXCHANGE PARTITION")?;
                if is_temporary(&with.name) != is_temporary(&table.name) {
                    let message = format!("table \"{}\" is temporary, or \"{}\" is, and the other is not", with.name, table.name);
                    return Err(SqlError::new("42809", message));
                }
                self.refuse_referred(table, "exchange a partition of")?;
                self.refuse_referred(&with, "exchange a partition with")?;
                Ok(self.transaction.exchange_partition(&table.name, &identifier(partition), &with.name)?)
            }
            (Mark::Part | Mark::Rotate, part) => {
                if mark == Mark::Rotate {
                    self.refuse_referred(table, "rotate a partition of")?;
                    let whole = self.transaction.partitioned_table(&table.name)?;
                    if let Some(oldest) = whole.own_partitions().first() {
                        self.refuse_read_partition(table, oldest.name())?;
                    }
                }
                let whole = self.transaction.partitioned_table(&table.name)?;
                let columns = whole.columns().to_vec();
                let like = table.first().table.attributes().clone();
                let spec = self.partition(part, &like, &columns)?;
                self.refuse_taken_partition(table, &spec.name)?;
                let made = match mark {
                    Mark::Rotate => self.transaction.rotate_partition(&table.name, &spec).map(drop),
                    _ => self.transaction.add_partition(&table.name, &spec).map(drop),
                };
                made.map_err(|error| taken(error, &spec.name))
            }
            _ => Err(SqlError::unsupported("this form of EXCHANGE PARTITION")),
        }
    }

    /// A partition of a table that was made before it is a relation of its own name: nothing else has that.
    pub(super) fn refuse_taken_partition(&mut self, table: &TableRef, name: &str) -> SqlResult<()> {
        let name = beside(&table.name, name);
        match table.is_open() && is_relation(self.transaction, &name) {
            true => Err(SqlError::new("42P07", format!("relation \"{name}\" already exists"))),
            false => Ok(()),
        }
    }

    /// ALTER TABLE ... DROP PARTITION.
    pub(super) fn drop_partition(&mut self, table: &TableRef, partition: &ast::Expr) -> SqlResult<()> {
        let ast::Expr::Identifier(name) = partition else {
            return Err(SqlError::unsupported(format!("ALTER TABLE ... DROP PARTITION ({partition})")));
        };
        refuse_undivided(table)?;
        self.refuse_referred(table, "drop a partition of")?;
        self.refuse_read_partition(table, &identifier(name))?;
        self.drop_partition_called(table, &identifier(name))
    }

    /// Drops a partition that nothing needs.
    pub(super) fn drop_partition_called(&mut self, table: &TableRef, name: &str) -> SqlResult<()> {
        match self.transaction.drop_partition(&table.name, name) {
            Err(Error::Unknown { .. }) => {
                Err(SqlError::new("42704", format!("partition \"{name}\" of table \"{}\" does not exist", table.name)))
            }
            done => Ok(done?),
        }
    }

    /// A view may name a partition alone.
    pub(super) fn refuse_read_partition(&mut self, table: &TableRef, partition: &str) -> SqlResult<()> {
        let own = Going::Table(pagefold_engine::database::partition_name(&table.name, partition));
        match self.views_on(&[own]).into_iter().next() {
            Some((_, line)) => {
                let message = format!("cannot drop partition {partition} of table {} because other objects depend on it", table.name);
                Err(SqlError::new("2BP01", message).with_detail(line))
            }
            None => Ok(()),
        }
    }

    /// Rows that others refer to would be gone: nobody looks which these are.
    pub(super) fn refuse_referred(&mut self, table: &TableRef, what: &str) -> SqlResult<()> {
        // Nobody makes a foreign key to it from here on. A partition that goes may be damaged: none of them is looked at.
        match table.is_divided() {
            true => drop(self.transaction.lock_partitioned_table(&table.name)?),
            false => self.say(table, |_| Ok(()))?,
        }
        match self.referring_to(&table.name)?.first() {
            Some(own) => Err(SqlError::new("0A000", format!("cannot {what} a table referenced in a foreign key constraint"))
                .with_detail(format!("Table \"{}\" references \"{}\".", own.child.name, table.name))),
            None => Ok(()),
        }
    }
}

/// The name of a table, where an expression stands for it.
pub(super) fn relation(expr: &ast::Expr) -> SqlResult<ast::ObjectName> {
    match expr {
        ast::Expr::Identifier(name) => Ok(vec![name.clone()].into()),
        ast::Expr::CompoundIdentifier(names) => Ok(names.clone().into()),
        other => Err(SqlError::syntax(format!("{other} is no table"))),
    }
}

fn refuse_undivided(table: &TableRef) -> SqlResult<()> {
    if table.is_divided() { Ok(()) } else { Err(SqlError::new("42809", format!("table \"{}\" is not partitioned", table.name))) }
}
