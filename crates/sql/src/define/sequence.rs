//! CREATE SEQUENCE, ALTER SEQUENCE, and the sequences of SERIAL and identity columns.

use super::{Defining, taken, too_much};
use crate::bind::change::column_of;
use crate::catalog::{Found, TableRef, find, table_names};
use crate::expression::Expr;
use crate::parse::{identifier, object_name, quoted_where_needed};
use crate::sequences::statement::{AlterSequence, Altered, Restart};
use crate::sequences::{SequenceCall, SequenceRef};
use crate::settings::text_of;
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_format::catalog::{DefinedKind, Identity, Notes, Sequence};
use pagefold_types::DataType;
use sqlparser::ast::{self, SequenceOptions};
use std::sync::Arc;

impl Defining<'_> {
    pub(super) fn create_sequence(
        &mut self,
        name: &ast::ObjectName,
        data_type: Option<&ast::DataType>,
        options: &[SequenceOptions],
        if_not_exists: bool,
        owned_by: Option<&ast::ObjectName>,
    ) -> SqlResult<String> {
        let name = self.check_schema(name)?;
        let data_type = data_type.map_or(Ok(DataType::BigInt), crate::bind::types::data_type)?;
        if if_not_exists && self.transaction.object(DefinedKind::Sequence, &name).is_ok() {
            self.skips("relation", &name);
            return Ok("CREATE SEQUENCE".into());
        }
        self.make_sequence(&name, &data_type, options)?;
        if let Some(column) = owned_by.filter(|column| column.to_string() != "NONE") {
            self.own(&name, column)?;
        }
        Ok("CREATE SEQUENCE".into())
    }

    pub(crate) fn alter_sequence(&mut self, alter: &AlterSequence) -> SqlResult<String> {
        let (name, tag) = match &alter.altered {
            Altered::Sequence(name) => (object_name(name)?, "ALTER SEQUENCE"),
            Altered::Column(table, column) => {
                let table = match TableRef::find(self.transaction, &object_name(table)?) {
                    Err(error) if error.sqlstate() == "42P01" && alter.if_exists => {
                        self.notice(format!("{}, skipping", error.message()));
                        return Ok("ALTER TABLE".into());
                    }
                    found => found?,
                };
                let at = column_of(&table, column)?;
                let sequence = table.rules.identity[at].and_then(|identity| self.sequence_numbered(identity.sequence));
                let none = || {
                    let column = &table.schema.columns()[at].name;
                    SqlError::new("55000", format!("column \"{column}\" of relation \"{}\" is not an identity column", table.name))
                };
                (sequence.ok_or_else(none)?, "ALTER TABLE")
            }
        };
        let before = match self.transaction.object(DefinedKind::Sequence, &name) {
            Err(Error::Unknown { .. }) if alter.if_exists => {
                self.notice(format!("relation \"{name}\" does not exist, skipping"));
                return Ok(tag.into());
            }
            Err(Error::Unknown { .. }) => return Err(SqlError::new("42P01", format!("relation \"{name}\" does not exist"))),
            found => found?,
        };
        let said = before.notes.sequence().unwrap_or_default();
        let numbers = numbers(&name, &DataType::BigInt, &alter.options, Some(&said))?;
        let mut notes = before.notes.clone();
        notes.set_sequence(Some(&numbers)).map_err(too_much)?;
        match alter.restart {
            None if numbers == said => {}
            None => self.transaction.alter_object(DefinedKind::Sequence, &name, notes)?,
            Some(restart) => self.restart_as(&name, before.object_id, notes, restart)?,
        }
        match &alter.owned_by {
            Some(Some(column)) => self.own(&name, column)?,
            Some(None) if self.owner(before.object_id)?.is_some() => {
                return Err(SqlError::unsupported("taking its sequence from a column"));
            }
            _ => {}
        }
        Ok(tag.into())
    }

    /// The column of a sequence gets another type: bounds that were those of the old one are those of the new one.
    pub(super) fn count_as(&mut self, sequence: u32, before: &DataType, after: &DataType) -> SqlResult<()> {
        let (Some(name), Some(old), Some(new)) = (self.sequence_numbered(sequence), before.int_range(), after.int_range()) else {
            return Ok(());
        };
        let mut notes = self.transaction.object(DefinedKind::Sequence, &name)?.notes.clone();
        let said = notes.sequence().unwrap_or_default();
        let mut numbers = said.clone();
        if numbers.greatest == old.1 {
            numbers.greatest = new.1;
        }
        if numbers.least == old.0 {
            numbers.least = new.0;
        }
        if numbers == said {
            return Ok(());
        }
        notes.set_sequence(Some(&numbers)).map_err(too_much)?;
        Ok(self.transaction.alter_object(DefinedKind::Sequence, &name, notes)?)
    }

    /// Numbers begin anew with the first one.
    pub(super) fn restart(&mut self, name: &str) -> SqlResult<()> {
        let before = self.transaction.object(DefinedKind::Sequence, name)?;
        self.restart_as(name, before.object_id, before.notes.clone(), Restart::First)
    }

    /// The sequence becomes another one, whose numbers nobody was given: so it is taken back with the transaction.
    fn restart_as(&mut self, name: &str, before: u32, notes: Notes, restart: Restart) -> SqlResult<()> {
        let owner = self.owner(before)?;
        let numbers = notes.sequence().unwrap_or_default();
        self.transaction.drop_object(DefinedKind::Sequence, name)?;
        let made = self.transaction.create_object(DefinedKind::Sequence, name, notes).map_err(|error| taken(error, name))?;
        if let Restart::With(number) = restart {
            let sequence = SequenceRef { id: made.object_id, name: name.into(), numbers };
            if !(sequence.numbers.least..=sequence.numbers.greatest).contains(&number) {
                let (than, bound) = match number < sequence.numbers.least {
                    true => ("less than MINVALUE", sequence.numbers.least),
                    false => ("greater than MAXVALUE", sequence.numbers.greatest),
                };
                return Err(SqlError::new("22023", format!("RESTART value ({number}) cannot be {than} ({bound})")));
            }
            self.run.database.set_number(&sequence, number, false, self.run.drawn)?;
        }
        self.run.drawn.renumbered(before, made.object_id);
        match owner {
            Some((table, column)) => self.count_by(&table, column, made.object_id),
            None => Ok(()),
        }
    }

    /// The column that a sequence belongs to.
    fn owner(&mut self, sequence: u32) -> SqlResult<Option<(Arc<TableRef>, usize)>> {
        for name in table_names(self.transaction) {
            let Ok(Found::Table(table)) = find(self.transaction, &name) else { continue };
            let is_it = |identity: &Option<Identity>| identity.is_some_and(|identity| identity.sequence == sequence);
            if let Some(column) = table.rules.identity.iter().position(is_it) {
                return Ok(Some((table, column)));
            }
        }
        Ok(None)
    }

    /// A column has the numbers of another sequence from now on.
    fn count_by(&mut self, table: &TableRef, column: usize, sequence: u32) -> SqlResult<()> {
        let column = u32::try_from(column).unwrap_or(u32::MAX);
        self.say(table, |notes| {
            let mut own = notes.column(column);
            own.identity = own.identity.map(|identity| Identity { sequence, ..identity });
            notes.set_column(&own).map_err(too_much)
        })
    }

    /// OWNED BY: of a column whose default takes its numbers.
    fn own(&mut self, name: &str, column: &ast::ObjectName) -> SqlResult<()> {
        let mut parts = column.0.clone();
        let (Some(ast::ObjectNamePart::Identifier(column)), false) = (parts.pop(), parts.is_empty()) else {
            return Err(SqlError::syntax("invalid OWNED BY option").with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
        };
        let table = TableRef::find(self.transaction, &object_name(&ast::ObjectName(parts))?)?;
        let at = column_of(&table, &column)?;
        let sequence = self.transaction.object(DefinedKind::Sequence, name)?.object_id;
        if table.rules.identity[at].is_some_and(|identity| identity.sequence == sequence) {
            return Ok(());
        }
        let default = table.rules.defaults[at].clone().map(|text| (text, table.schema.columns()[at].data_type));
        let is_of_default = match default {
            Some((text, data_type)) => {
                let own = identifier(&column);
                let expr = self.bind(|binder| binder.default_expression(&text, &data_type, &own))?;
                expr.any(|part| matches!(part, Expr::Sequence { call: SequenceCall::Next(of), .. } if of.id == sequence))
            }
            None => false,
        };
        if !is_of_default || self.owner(sequence)?.is_some() {
            let error = SqlError::unsupported("OWNED BY a column that does not take its numbers from the sequence");
            return Err(error.with_hint("First: ALTER TABLE ... ALTER COLUMN ... SET DEFAULT nextval(...)."));
        }
        // The same as a SERIAL column from now on.
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        self.say(&table, |notes| {
            let mut own = notes.column(at);
            own.identity = Some(Identity { sequence, always: false });
            notes.set_column(&own).map_err(too_much)
        })
    }

    /// Makes a sequence; gives its object's number.
    pub(super) fn make_sequence(&mut self, name: &str, data_type: &DataType, options: &[SequenceOptions]) -> SqlResult<u32> {
        let numbers = numbers(name, data_type, options, None)?;
        let mut notes = Notes::default();
        notes.set_sequence(Some(&numbers)).map_err(too_much)?;
        self.refuse_taken(name)?;
        let made = self.transaction.create_object(DefinedKind::Sequence, name, notes).map_err(|error| taken(error, name))?;
        Ok(made.object_id)
    }
}

pub(crate) fn number(expr: &ast::Expr) -> SqlResult<i64> {
    let text = text_of(expr);
    text.replace(' ', "").parse().map_err(|_| SqlError::syntax(format!("{text} is no number of a sequence")))
}

/// What options say, and where they do not, what was said before.
fn numbers(name: &str, data_type: &DataType, options: &[SequenceOptions], before: Option<&Sequence>) -> SqlResult<Sequence> {
    let wrong = |what: String| SqlError::new("22023", format!("sequence \"{name}\": {what}"));
    let mut sequence = before.cloned().unwrap_or_default();
    let mut increment = sequence.increment;
    let (mut start, mut least, mut greatest) = (before.map(|of| of.start), before.map(|of| of.least), before.map(|of| of.greatest));
    for option in options {
        match option {
            SequenceOptions::IncrementBy(by, _) => increment = number(by)?,
            SequenceOptions::StartWith(with, _) => start = Some(number(with)?),
            SequenceOptions::MinValue(value) => least = value.as_ref().map(number).transpose()?,
            SequenceOptions::MaxValue(value) => greatest = value.as_ref().map(number).transpose()?,
            SequenceOptions::Cache(count) => {
                sequence.cache =
                    u32::try_from(number(count)?).ok().filter(|count| *count > 0).ok_or_else(|| wrong("CACHE is at least 1".into()))?;
            }
            SequenceOptions::Cycle(does_not) => sequence.cycles = !does_not,
        }
    }
    let (lowest, highest) = data_type.int_range().ok_or_else(|| wrong(format!("{data_type} is no type of whole numbers")))?;
    if increment == 0 {
        return Err(wrong("INCREMENT must not be zero".into()));
    }
    sequence.increment = increment;
    sequence.least = least.unwrap_or(if increment > 0 { 1 } else { lowest });
    sequence.greatest = greatest.unwrap_or(if increment > 0 { highest } else { -1 });
    if sequence.least > sequence.greatest || sequence.least < lowest || sequence.greatest > highest {
        return Err(wrong(format!("MINVALUE {} and MAXVALUE {} leave no numbers of {data_type}", sequence.least, sequence.greatest)));
    }
    sequence.start = start.unwrap_or(if increment > 0 { sequence.least } else { sequence.greatest });
    if !(sequence.least..=sequence.greatest).contains(&sequence.start) {
        return Err(wrong(format!("START {} is not between MINVALUE and MAXVALUE", sequence.start)));
    }
    Ok(sequence)
}

/// The name of an object, for the text of a default: in quotes where it would be another without them.
pub(super) fn literal(name: &str) -> String {
    format!("nextval('{}')", quoted_where_needed(name).replace('\'', "''"))
}
