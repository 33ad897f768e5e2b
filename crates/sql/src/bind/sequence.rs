//! Calls on sequences: NEXTVAL, CURRVAL, LASTVAL, SETVAL, and the sequence of a column.

use super::{Binder, TEXT, string};
use crate::catalog::TableRef;
use crate::expression::{Expr, Typed, make};
use crate::parse::{parse_name, quoted_where_needed};
use crate::sequences::{SequenceCall, SequenceRef};
use crate::{SqlError, SqlResult};
use pagefold_engine::Error;
use pagefold_format::catalog::DefinedKind;
use pagefold_types::{DataType, Value};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr};
use std::sync::Arc;

/// The argument without `::regclass`, which says that it is the name of a relation.
fn without_class(expr: &ast::Expr) -> &ast::Expr {
    match expr {
        ast::Expr::Nested(of) => without_class(of),
        ast::Expr::Cast { expr: of, data_type: ast::DataType::Regclass, .. } => without_class(of),
        ast::Expr::Cast { expr: of, data_type: ast::DataType::Custom(name, _), .. }
            if name.to_string().eq_ignore_ascii_case("regclass") =>
        {
            without_class(of)
        }
        other => other,
    }
}

impl Binder<'_> {
    /// A call on a sequence; `None`: it is another function.
    pub(super) fn sequence_call(&mut self, name: &str, arguments: &[FunctionArg], depth: usize) -> SqlResult<Option<Typed>> {
        if !matches!(name, "nextval" | "currval" | "lastval" | "setval" | "pg_get_serial_sequence") {
            return Ok(None);
        }
        let mut written = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument else {
                return Err(SqlError::unsupported(format!("the argument {argument} of {name}")));
            };
            written.push(without_class(argument));
        }
        let (call, values) = match (name, written.as_slice()) {
            ("nextval", [of]) => (SequenceCall::Next(self.sequence_named(name, of, depth)?), Vec::new()),
            ("currval", [of]) => (SequenceCall::Current(self.sequence_named(name, of, depth)?), Vec::new()),
            ("lastval", []) => (SequenceCall::Last, Vec::new()),
            ("setval", [of, number, is_given @ ..]) if is_given.len() < 2 => {
                let sequence = self.sequence_named(name, of, depth)?;
                let number = self.bound_expression(number, depth)?;
                let mut values = vec![make::coerce(number, &DataType::BigInt, self.params)?.expr];
                for is_given in is_given {
                    values.push(make::condition(self.bound_expression(is_given, depth)?, name, self.params)?);
                }
                (SequenceCall::Set(sequence), values)
            }
            ("pg_get_serial_sequence", [table, column]) => {
                let (table, column) = (self.name_of(name, table, depth)?, self.name_of(name, column, depth)?);
                return self.sequence_of_column(&table, &column).map(Some);
            }
            _ => return Err(SqlError::new("42883", format!("function {name} of {} arguments does not exist", written.len()))),
        };
        self.drawn += 1;
        Ok(Some(Typed::of(Expr::Sequence { call, arguments: values }, DataType::BigInt)))
    }

    /// A name that is an argument.
    fn name_of(&mut self, function: &str, argument: &ast::Expr, depth: usize) -> SqlResult<String> {
        let bound = match argument {
            ast::Expr::Value(value) => string(&value.value),
            other => match self.bound_expression(other, depth)?.literal() {
                Some(Value::Text(name)) => Some(name.clone()),
                _ => None,
            },
        };
        bound.ok_or_else(|| SqlError::unsupported(format!("{function} of what is no name in quotes")))
    }

    fn sequence_named(&mut self, function: &str, argument: &ast::Expr, depth: usize) -> SqlResult<Arc<SequenceRef>> {
        let name = parse_name(&self.name_of(function, argument, depth)?)?;
        let found = match self.transaction.object(DefinedKind::Sequence, &name) {
            Err(Error::Unknown { .. }) => {
                return Err(SqlError::new("42P01", format!("relation \"{name}\" does not exist")));
            }
            found => found?,
        };
        if let Some(needs) = &mut self.needs {
            needs.sequences.insert(name.clone());
        }
        let numbers = found.notes.sequence().ok_or_else(|| SqlError::new("XX001", format!("sequence \"{name}\" has no numbers")))?;
        Ok(Arc::new(SequenceRef { id: found.object_id, name: name.into(), numbers }))
    }

    /// The name of the sequence that a column counts by, as it can be written, or NULL.
    fn sequence_of_column(&mut self, table: &str, column: &str) -> SqlResult<Typed> {
        let table = TableRef::find(self.transaction, &parse_name(table)?)?;
        let at = crate::bind::change::column_of(&table, &ast::Ident::with_quote('"', column))?;
        let number = table.rules.identity[at].map(|identity| identity.sequence);
        let mut names = self.transaction.object_names(DefinedKind::Sequence).into_iter();
        let is_it = |name: &String| self.transaction.object(DefinedKind::Sequence, name).is_ok_and(|found| Some(found.object_id) == number);
        let found = names.find(is_it).map(|name| {
            let name = quoted_where_needed(&name);
            if name.contains('.') { name } else { format!("public.{name}") }
        });
        Ok(Typed::of(Expr::Literal(found.map_or(Value::Null, Value::Text)), TEXT))
    }
}
