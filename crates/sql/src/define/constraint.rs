//! Constraints as they are written: what of them there is, and their names.

use super::Defining;
use crate::catalog::is_relation;
use crate::{SqlError, SqlResult};
use sqlparser::ast::{self, NullsDistinctOption};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

/// Refuses what a CHECK would not do.
pub(super) fn plain_check(check: &ast::CheckConstraint) -> SqlResult<&ast::Expr> {
    if check.enforced == Some(false) {
        return Err(SqlError::unsupported("a CHECK that is NOT ENFORCED"));
    }
    Ok(&check.expr)
}

/// Refuses what a UNIQUE would not do.
pub(super) fn plain_unique(unique: &ast::UniqueConstraint) -> SqlResult<&ast::UniqueConstraint> {
    if unique.nulls_distinct == NullsDistinctOption::NotDistinct {
        return Err(SqlError::unsupported("UNIQUE NULLS NOT DISTINCT"));
    }
    refuse_characteristics(unique.characteristics)?;
    Ok(unique)
}

/// Refuses what a PRIMARY KEY would not do.
pub(super) fn plain_key(key: &ast::PrimaryKeyConstraint) -> SqlResult<&ast::PrimaryKeyConstraint> {
    refuse_characteristics(key.characteristics)?;
    Ok(key)
}

pub(super) fn refuse_characteristics(of: Option<ast::ConstraintCharacteristics>) -> SqlResult<()> {
    let is_other = of.is_some_and(|of| {
        of.deferrable == Some(true) || of.initially == Some(ast::DeferrableInitial::Deferred) || of.enforced == Some(false)
    });
    if is_other { Err(SqlError::unsupported("a constraint that is DEFERRABLE or NOT ENFORCED")) } else { Ok(()) }
}

/// What an object is called that has no name: `<table>_<columns>_<what>`. A point would make a schema of what is before it.
pub(super) fn base_name(table: &str, columns: &[&str], what: &str) -> String {
    let columns: String = columns.iter().map(|column| format!("{}_", column.replace('.', "_"))).collect();
    format!("{table}_{columns}{what}")
}

/// What a CHECK is called that has no name: after the column, where it names one alone.
pub(super) fn check_name(table: &str, columns: &[&str], condition: &str) -> String {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, condition).tokenize().unwrap_or_default();
    let tokens: Vec<Token> = tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let mut named: Vec<&str> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        // Neither a function nor a type, nor the table of a column.
        let is_other = matches!(tokens.get(at + 1), Some(Token::LParen | Token::Period));
        let is_type = at.checked_sub(1).is_some_and(|before| tokens[before] == Token::DoubleColon);
        let name = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
        match columns.iter().find(|column| **column == name) {
            Some(column) if !is_other && !is_type && !named.contains(column) => named.push(column),
            _ => {}
        }
    }
    base_name(table, if named.len() == 1 { &named } else { &[] }, "check")
}

impl Defining<'_> {
    /// The first of `base`, `base1`, `base2` ... that no relation has, and none that is about to be made.
    pub(super) fn free_name(&mut self, base: String, is_planned: impl Fn(&String) -> bool) -> String {
        first_free(base, |name| is_planned(name) || is_relation(self.transaction, name))
    }
}

/// The first of `base`, `base1`, `base2` ... that is free.
pub(super) fn first_free(base: String, mut is_taken: impl FnMut(&String) -> bool) -> String {
    if !is_taken(&base) {
        return base;
    }
    (1_u32..).map(|number| format!("{base}{number}")).find(|name| !is_taken(name)).unwrap_or(base)
}
