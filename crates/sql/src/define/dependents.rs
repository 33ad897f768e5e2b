//! What needs an object that is to go: views, foreign keys, defaults.
//!
//! The catalog keeps views and defaults as texts. What they need is found by binding them, when something goes: those that have its name in them.
//!
//! Invariant: a text that cannot be bound needs nothing: it is broken already.

use super::foreign_key::Referring;
use super::{Defining, too_much};
use crate::bind::{Needs, Wildcard};
use crate::catalog::{Found, TableRef, find_if_any, table_names};
use crate::parse::{parse_query, quoted_ident, replaced, short_name};
use crate::session::Notice;
use crate::temporary::{Entered, is_temporary};
use crate::{SqlError, SqlResult};
use pagefold_engine::database::split_partition_name;
use pagefold_format::catalog::{Constraint, DefinedKind};
use std::collections::BTreeSet;
use std::fmt;

/// What is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Going {
    Table(String),
    View(String),
    Sequence(String),
    /// A column of a table, by number, and its name.
    Column(String, usize, String),
}

impl fmt::Display for Going {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Going::Table(name) => write!(f, "table {name}"),
            Going::View(name) => write!(f, "view {name}"),
            Going::Sequence(name) => write!(f, "sequence {name}"),
            Going::Column(table, _, name) => write!(f, "column {name} of table {table}"),
        }
    }
}

impl Going {
    /// The relation or sequence that a text would have to name.
    fn name(&self) -> &str {
        match self {
            Going::Table(name) | Going::View(name) | Going::Sequence(name) | Going::Column(name, ..) => name,
        }
    }

    /// A text that needs it has its name in it, in whatever case.
    fn may_be_in(&self, text: &str) -> bool {
        let name = short_name(self.name()).replace('"', "\"\"").replace('\'', "''");
        let plain = |c: char| c.is_alphanumeric() || c == '_';
        !name.chars().all(plain) || text.to_lowercase().contains(&name.to_lowercase())
    }

    fn is_needed(&self, needs: &Needs) -> bool {
        // Who reads a partition reads its table.
        let is_of = |name: &String, table: &String| name == table || split_partition_name(name).is_some_and(|(whole, _)| whole == table);
        match self {
            Going::Table(table) => needs.relations.iter().any(|name| is_of(name, table)),
            Going::View(view) => needs.relations.contains(view),
            Going::Sequence(sequence) => needs.sequences.contains(sequence),
            Going::Column(table, column, _) => needs.columns.iter().any(|(name, own)| own == column && is_of(name, table)),
        }
    }
}

/// What needs something that goes.
pub(super) enum Dependent {
    View(String),
    Key(Box<Referring>),
    /// The default of a column of a table, by number.
    Default(String, u32),
}

/// What needs something, and a line that says so.
pub(super) type Dependents = Vec<(Dependent, String)>;

/// The columns that `*` means as a list of SELECT, without what stands before it already; `None` when two of them have the same name.
fn written(Wildcard { is_qualified, columns, .. }: &Wildcard) -> Option<String> {
    let names: BTreeSet<&(Option<String>, String)> = columns.iter().collect();
    let bare: Vec<&String> = columns.iter().filter(|(relation, _)| relation.is_none()).map(|(_, name)| name).collect();
    // One without a relation would be the other, too.
    let is_one = |name: &&&String| columns.iter().filter(|(_, own)| own == **name).count() == 1;
    if names.len() < columns.len() || bare.iter().filter(is_one).count() < bare.len() {
        return None;
    }
    let all = columns.iter().enumerate().map(|(at, (relation, name))| {
        let relation = relation.as_ref().filter(|_| at > 0 || !is_qualified).map(|relation| format!("{}.", quoted_ident(relation)));
        format!("{}{}", relation.unwrap_or_default(), quoted_ident(name))
    });
    Some(all.collect::<Vec<_>>().join(", "))
}

impl Defining<'_> {
    /// Drops what needs something that goes, or refuses that. `what` goes: one thing, or several.
    pub(super) fn drop_dependents(&mut self, what: Option<&str>, dependents: Dependents, cascade: bool) -> SqlResult<()> {
        if !cascade && !dependents.is_empty() {
            let message = match what {
                Some(what) => format!("cannot drop {what} because other objects depend on it"),
                None => "cannot drop desired object(s) because other objects depend on them".into(),
            };
            let lines: Vec<String> = dependents.into_iter().map(|(_, line)| line).collect();
            let error = SqlError::new("2BP01", message).with_detail(lines.join("\n"));
            return Err(error.with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let object = |line: &String| line.split(" depends on ").next().unwrap_or_default().to_owned();
        self.cascades(dependents.iter().map(|(_, line)| object(line)).collect());
        for (dependent, _) in dependents {
            match dependent {
                Dependent::View(name) => self.transaction.drop_object(DefinedKind::View, &name)?,
                Dependent::Key(own) => {
                    let child = TableRef::find(self.transaction, &own.child.name)?;
                    self.say(&child, |notes| {
                        let is_other = |other: &Constraint| other.name != own.constraint.name;
                        let all: Vec<Constraint> = notes.constraints().into_iter().filter(is_other).collect();
                        notes.set_constraints(&all).map_err(too_much)
                    })?;
                }
                Dependent::Default(table, column) => {
                    let table = TableRef::find(self.transaction, &table)?;
                    self.say(&table, |notes| {
                        let mut own = notes.column(column);
                        (own.default, own.identity) = (None, None);
                        notes.set_column(&own).map_err(too_much)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Tells what goes with something else.
    pub(super) fn cascades(&mut self, objects: Vec<String>) {
        match objects.as_slice() {
            [] => {}
            [object] => self.notice(format!("drop cascades to {object}")),
            objects => {
                let lines: Vec<String> = objects.iter().map(|object| format!("drop cascades to {object}")).collect();
                let message = format!("drop cascades to {} other objects", objects.len());
                self.notices.push(Notice { message, detail: Some(lines.join("\n")) });
            }
        }
    }

    /// Views that need something of what goes, and views that need these, but for those that go themselves.
    pub(super) fn views_on(&mut self, going: &[Going]) -> Dependents {
        let mut found = Dependents::new();
        // Views mean no temporary tables.
        let going: Vec<&Going> = going.iter().filter(|own| !is_temporary(own.name())).collect();
        if going.is_empty() {
            return found;
        }
        let names = self.transaction.object_names(DefinedKind::View);
        let mut texts: Vec<(String, String)> = Vec::with_capacity(names.len());
        for name in names {
            let text = self.transaction.object(DefinedKind::View, &name).ok().and_then(|view| view.notes.text().map(str::to_owned));
            texts.extend(text.map(|text| (name, text)));
        }
        let mut gone: BTreeSet<String> = BTreeSet::new();
        gone.extend(going.iter().filter_map(|own| if let Going::View(name) = own { Some(name.clone()) } else { None }));
        // Those that need one come behind it, before the next.
        let mut waiting: Vec<Going> = going.into_iter().rev().cloned().collect();
        while let Some(own) = waiting.pop() {
            let mut next = Vec::new();
            for (name, text) in texts.iter().filter(|(_, text)| own.may_be_in(text)) {
                if !gone.contains(name) && self.needs_of_view(text).is_some_and(|needs| own.is_needed(&needs)) {
                    gone.insert(name.clone());
                    found.push((Dependent::View(name.clone()), format!("view {name} depends on {own}")));
                    next.push(Going::View(name.clone()));
                }
            }
            waiting.extend(next.into_iter().rev());
        }
        found
    }

    /// The text of a new view, with the columns that there are now in the place of each `*`: those that its tables get later are none of the view's. Nobody else drops or alters these tables before there
    /// is that view.
    pub(super) fn with_columns_named(&mut self, text: String) -> SqlResult<String> {
        let query = parse_query(&text)?;
        let needs_of = |own: &mut Self| own.bind(|binder| binder.needs_of(|binder| binder.query(&query)));
        for name in &needs_of(self)?.relations {
            if let Some(Found::Table(table)) = find_if_any(self.transaction, name)? {
                for at in 0..table.parts.len() {
                    self.transaction.keep_definition(&table.part(at)?.table)?;
                }
            }
        }
        // As they are now that they stay.
        let wildcards = needs_of(self)?.wildcards;
        let mut places: Vec<_> = wildcards.iter().filter_map(|wildcard| Some((wildcard.place, written(wildcard)?))).collect();
        places.sort_unstable();
        places.dedup();
        Ok(replaced(&text, &places))
    }

    fn needs_of_view(&mut self, text: &str) -> Option<Needs> {
        let _entered = Entered::new(None);
        let query = parse_query(text).ok()?;
        self.bind(|binder| binder.needs_of(|binder| binder.query(&query))).ok()
    }

    /// Defaults that take numbers from sequences which go, but for those of some tables.
    pub(super) fn defaults_on(&mut self, going: &[Going], but_of: &[String]) -> SqlResult<Dependents> {
        let mut found = Dependents::new();
        let going: Vec<&Going> = going.iter().filter(|own| matches!(own, Going::Sequence(name) if !is_temporary(name))).collect();
        if going.is_empty() {
            return Ok(found);
        }
        for name in table_names(self.transaction).into_iter().filter(|name| !but_of.contains(name)) {
            // What is damaged needs nothing.
            let Ok(Some(Found::Table(table))) = find_if_any(self.transaction, &name) else { continue };
            for (at, text) in table.rules.defaults.iter().enumerate() {
                let Some(text) = text.as_ref().filter(|text| going.iter().any(|own| own.may_be_in(text))) else { continue };
                let column = &table.schema.columns()[at];
                let bound = self.bind(|binder| binder.needs_of(|binder| binder.default_expression(text, &column.data_type, &column.name)));
                let Some(own) = bound.ok().and_then(|needs| going.iter().find(|own| own.is_needed(&needs))) else { continue };
                if table.rules.identity[at].is_some_and(|identity| identity.always) {
                    let message = format!("cannot drop {own} because column {} of table {name} requires it", column.name);
                    let hint = format!("You can drop column {} of table {name} instead.", column.name);
                    return Err(SqlError::new("2BP01", message).with_hint(hint));
                }
                let line = format!("default value for column {} of table {name} depends on {own}", column.name);
                found.push((Dependent::Default(name.clone(), u32::try_from(at).unwrap_or(u32::MAX)), line));
            }
        }
        Ok(found)
    }
}
