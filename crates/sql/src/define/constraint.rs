//! Constraints as they are written: what of them there is, and their names.

use crate::{SqlError, SqlResult};
use sqlparser::ast::{self, NullsDistinctOption};

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

/// The first of `base`, `base1`, `base2` ... that is free.
pub(super) fn first_free(base: String, is_taken: impl Fn(&String) -> bool) -> String {
    if !is_taken(&base) {
        return base;
    }
    (1_u32..).map(|number| format!("{base}{number}")).find(|name| !is_taken(name)).unwrap_or(base)
}
