//! Tests of expressions as they are written in SQL.
//!
//! * `sql`: from text to a typed expression, as far as these tests need it
//! * `postgres`: what PostgreSQL gives
//! * `columns`: expressions on rows: what of them is cast, what is left as it is
//! * `logic`: three values
//! * `properties`: numbers against other ways to compute them, casts there and back
//! * `aggregates`

mod aggregates;
mod columns;
mod logic;
mod postgres;
mod properties;
mod sql;
