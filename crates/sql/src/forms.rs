//! Forms of PostgreSQL's statements that sqlparser does not know, before it reads a statement:
//!
//! * `TABLE t` where a query may stand: `SELECT * FROM t`
//! * `ONLY t`: a name behind the mark [`ONLY`]
//! * `OVERRIDING { SYSTEM | USER } VALUE` of INSERT: what sqlparser takes for partitions
//! * `ALTER VIEW`, but for a new query: ALTER TABLE of a kind that there is not
//! * `sequence`: options of sequences in any order
//! * `FOR NO KEY UPDATE` and `FOR KEY SHARE`: the next stronger locks, FOR UPDATE and FOR SHARE
//! * `UNLOGGED`: such tables are logged as all others
//!
//! Invariant: nothing is changed within quotes.

mod sequence;

use crate::{SqlError, SqlResult};
use sqlparser::ast::{self, ObjectName, ObjectNamePart};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::borrow::Cow;

/// What stands before the name of a relation behind ONLY, as if it were a schema. Nobody can write it: a text with its first character is refused.
pub(crate) const ONLY: &str = "\0only";
const SYSTEM_VALUE: &str = "\0system value";
const USER_VALUE: &str = "\0user value";

/// What INSERT does with values for identity columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Overriding {
    /// Those of columns GENERATED ALWAYS are refused.
    #[default]
    Nothing,
    /// All are taken.
    System,
    /// None is taken: columns have the next numbers.
    User,
}

impl Overriding {
    /// That of a statement; `None`: what stands there is something else.
    pub(crate) fn of(insert: &ast::Insert) -> Option<Overriding> {
        match insert.partitioned.as_deref() {
            None => Some(Overriding::Nothing),
            Some([ast::Expr::Identifier(name)]) if name.value == SYSTEM_VALUE => Some(Overriding::System),
            Some([ast::Expr::Identifier(name)]) if name.value == USER_VALUE => Some(Overriding::User),
            Some(_) => None,
        }
    }
}

/// A name without ONLY; does that stand before it?
pub(crate) fn without_only(name: &ObjectName) -> (Cow<'_, ObjectName>, bool) {
    match name.0.split_first() {
        Some((ObjectNamePart::Identifier(first), rest)) if first.value == ONLY => (Cow::Owned(ObjectName(rest.to_vec())), true),
        _ => (Cow::Borrowed(name), false),
    }
}

/// Is it ALTER VIEW?
pub(crate) fn is_of_view(alter: &ast::AlterTable) -> bool {
    alter.table_type == Some(ast::AlterTableType::Iceberg)
}

/// The tokens of a statement that mean something.
struct Tokens<'t> {
    all: &'t [TokenWithSpan],
    own: Vec<usize>,
}

impl Tokens<'_> {
    fn token(&self, at: usize) -> Option<&Token> {
        self.own.get(at).map(|place| &self.all[*place].token)
    }

    fn is(&self, at: usize, words: &[&str]) -> bool {
        let Some(Token::Word(own)) = self.token(at) else { return false };
        own.quote_style.is_none() && words.iter().any(|word| own.value.eq_ignore_ascii_case(word))
    }

    fn is_name(&self, at: usize) -> bool {
        matches!(self.token(at), Some(Token::Word(_)))
    }

    /// The place behind a name with points.
    fn behind_name(&self, mut at: usize) -> usize {
        while self.is_name(at) && self.token(at + 1) == Some(&Token::Period) {
            at += 2;
        }
        at + 1
    }
}

/// Tokens that take the place of some, by their numbers among those that mean something.
type Change = (std::ops::Range<usize>, Vec<Token>);

fn marker(name: &str) -> Token {
    Token::Word(Word { value: name.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword })
}

/// Rewrites the tokens of a statement.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let is_own = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF);
    let read = Tokens { all: tokens, own: (0..tokens.len()).filter(is_own).collect() };
    let mut changes = Vec::new();
    if read.is(0, &["alter"]) && read.is(1, &["view"]) {
        changes.extend(alter_view(&read)?);
    }
    if read.is(0, &["create"]) {
        let temporary = (1..3).take_while(|at| read.is(*at, &["global", "local", "temp", "temporary", "unlogged"]));
        changes.extend(temporary.filter(|at| read.is(*at, &["unlogged"])).map(|at| (at..at + 1, Vec::new())));
        refuse_as_execute(&read)?;
        changes.extend(sequence::in_order(&read));
    }
    if !read.is(0, &["alter", "truncate"]) {
        changes.extend((1..read.own.len()).filter_map(|at| only(&read, at)));
    }
    changes.extend(tables(&read));
    changes.extend((0..read.own.len()).filter_map(|at| weaker_lock(&read, at)));
    for at in 0..read.own.len() {
        changes.extend(overriding(&read, at)?);
    }
    let mut changes: Vec<Change> = changes.into_iter().filter(|(place, _)| place.end <= read.own.len()).collect();
    changes.sort_by_key(|(place, _)| place.start);
    let places = read.own;
    for (place, instead) in changes.into_iter().rev() {
        let (begin, last) = (places[place.start], places[place.end - 1]);
        let span = tokens[begin].span;
        tokens.splice(begin..=last, instead.into_iter().map(|token| TokenWithSpan { token, span }));
    }
    Ok(())
}

/// ALTER VIEW, where no new query follows.
fn alter_view(read: &Tokens<'_>) -> SqlResult<Option<Change>> {
    let name = if read.is(2, &["if"]) { 4 } else { 2 };
    let behind = read.behind_name(name);
    if read.is(behind, &["as"]) {
        return Ok(None);
    }
    if read.is(behind, &["set"]) {
        let what = if read.is(behind + 1, &["schema"]) { "ALTER VIEW ... SET SCHEMA" } else { "ALTER VIEW ... SET" };
        return Err(SqlError::unsupported(what));
    }
    if read.is(behind, &["reset"]) {
        return Err(SqlError::unsupported("ALTER VIEW ... RESET"));
    }
    Ok(Some((1..2, vec![Token::make_keyword("ICEBERG"), Token::make_keyword("TABLE")])))
}

/// The words of a lock that there is not, which go: that of all of a row is in its place.
fn weaker_lock(read: &Tokens<'_>, at: usize) -> Option<Change> {
    let end = match () {
        () if !read.is(at, &["for"]) => return None,
        () if read.is(at + 1, &["no"]) && read.is(at + 2, &["key"]) && read.is(at + 3, &["update"]) => at + 3,
        () if read.is(at + 1, &["key"]) && read.is(at + 2, &["share"]) => at + 2,
        () => return None,
    };
    Some((at + 1..end, Vec::new()))
}

/// CREATE TABLE ... AS EXECUTE.
fn refuse_as_execute(read: &Tokens<'_>) -> SqlResult<()> {
    let is_table = (1..4).any(|at| read.is(at, &["table"]));
    match first_as(read).filter(|at| is_table && read.is(at + 1, &["execute"])) {
        Some(_) => Err(SqlError::unsupported("CREATE TABLE ... AS EXECUTE")),
        None => Ok(()),
    }
}

/// The first AS outside of parentheses.
fn first_as(read: &Tokens<'_>) -> Option<usize> {
    let mut depth = 0_i32;
    (0..read.own.len()).find(|at| {
        match read.token(*at) {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth -= 1,
            _ => {}
        }
        depth == 0 && read.is(*at, &["as"])
    })
}

/// `ONLY name` and `ONLY (name)` where a relation may stand.
fn only(read: &Tokens<'_>, at: usize) -> Option<Change> {
    let begins = read.token(at - 1) == Some(&Token::Comma) || read.is(at - 1, &["from", "join", "update", "using"]);
    if !begins || !read.is(at, &["only"]) {
        return None;
    }
    let mark = [marker(ONLY), Token::Period];
    if read.token(at + 1) != Some(&Token::LParen) {
        return read.is_name(at + 1).then(|| (at..at + 1, mark.to_vec()));
    }
    let end = read.behind_name(at + 2);
    if !read.is_name(end - 1) || read.token(end) != Some(&Token::RParen) {
        return None;
    }
    let name = (at + 2..end).filter_map(|at| read.token(at).cloned());
    Some((at..end + 1, mark.into_iter().chain(name).collect()))
}

/// `TABLE name` where a query may stand.
fn tables(read: &Tokens<'_>) -> Vec<Change> {
    let as_query = first_as(read).filter(|_| read.is(0, &["create", "prepare"]));
    let mut found = Vec::new();
    let mut depth = 0_i32;
    for at in 0..read.own.len() {
        match read.token(at) {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth -= 1,
            _ => {}
        }
        if !read.is(at, &["table"]) || !read.is_name(at + 1) {
            continue;
        }
        let before = at.checked_sub(1);
        let begins = match before {
            None => true,
            Some(before) => {
                let is_outside = depth == 0;
                read.token(before) == Some(&Token::LParen)
                    || read.is(before, &["union", "except", "intersect"])
                    || (read.is(before, &["all", "distinct"]) && before > 0 && read.is(before - 1, &["union", "except", "intersect"]))
                    || as_query == Some(before)
                    || (is_outside && read.is(0, &["explain"]) && read.is(before, &["explain", "analyze", "verbose"]))
                    || (is_outside && read.is(0, &["declare"]) && read.is(before, &["for"]))
                    || (is_outside && read.is(0, &["insert"]) && before > 1 && !read.is(before, &["as", "into"]))
                    || (is_outside && read.is(0, &["with"]) && read.token(before) == Some(&Token::RParen))
            }
        };
        if begins {
            found.push((at..at + 1, vec![Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")]));
        }
    }
    found
}

/// `OVERRIDING ... VALUE` behind the columns of INSERT, or its table, which then needs an alias to stand before it.
fn overriding(read: &Tokens<'_>, at: usize) -> SqlResult<Option<Change>> {
    if !(read.is(at, &["overriding"]) && read.is(at + 1, &["system", "user"]) && read.is(at + 2, &["value"])) {
        return Ok(None);
    }
    let Some(into) = (0..at).rev().find(|before| read.is(*before, &["insert"])).map(|insert| insert + 1) else { return Ok(None) };
    if !read.is(into, &["into"]) {
        return Err(SqlError::unsupported("OVERRIDING in MERGE"));
    }
    let mark = marker(if read.is(at + 1, &["system"]) { SYSTEM_VALUE } else { USER_VALUE });
    let mut instead = Vec::new();
    if read.behind_name(into + 1) == at {
        instead.push(Token::make_keyword("AS"));
        instead.extend(read.token(at - 1).cloned());
    }
    instead.extend([Token::make_keyword("PARTITION"), Token::LParen, mark, Token::RParen]);
    Ok(Some((at..at + 3, instead)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn of(text: &str) -> String {
        let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap();
        match rewrite(&mut tokens) {
            Ok(()) => {
                let words = tokens.iter().map(|token| token.token.to_string()).filter(|text| !text.trim().is_empty());
                words.collect::<Vec<_>>().join(" ").trim_end_matches(" EOF").to_owned()
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_table_is_a_query_where_one_may_stand() {
        assert_eq!(of("table t order by 1"), "SELECT * FROM t order by 1");
        assert_eq!(of("select 1 union all table s.t"), "select 1 union all SELECT * FROM s . t");
        assert_eq!(of("select * from (table t) as x"), "select * from ( SELECT * FROM t ) as x");
        assert_eq!(of("with q as (table t) table q"), "with q as ( SELECT * FROM t ) SELECT * FROM q");
        assert_eq!(of("create view v as table t"), "create view v as SELECT * FROM t");
        assert_eq!(of("create table u (a) as table t"), "create table u ( a ) as SELECT * FROM t");
        assert_eq!(of("insert into t (a) table u"), "insert into t ( a ) SELECT * FROM u");
        assert_eq!(of("insert into t table u"), "insert into t SELECT * FROM u");
        assert_eq!(of("explain analyze table t"), "explain analyze SELECT * FROM t");
        assert_eq!(of("declare c cursor for table t"), "declare c cursor for SELECT * FROM t");
        for text in ["select 1 as table from t", "drop table t", "create table t ( a int )", "backup table t to 'x'"] {
            assert_eq!(of(text), text);
        }
    }

    #[test]
    fn only_is_a_mark_before_a_name() {
        assert_eq!(of("delete from only t"), "delete from \"\0only\" . t");
        assert_eq!(of("update only s.t set a = 1"), "update \"\0only\" . s . t set a = 1");
        assert_eq!(of("select 1 from a, only (s.t) x"), "select 1 from a , \"\0only\" . s . t x");
        for text in ["fetch first 1 rows only", "begin read only", "alter table only t", "select \"only\" from \"only\"", "from only ("] {
            assert_eq!(of(text), text);
        }
    }

    #[test]
    fn overriding_is_a_mark_behind_columns() {
        assert_eq!(
            of("insert into s.t overriding system value values (1)"),
            "insert into s . t AS t PARTITION ( \"\0system value\" ) values ( 1 )"
        );
        assert_eq!(
            of("insert into t as x (a) overriding user value select 1"),
            "insert into t as x ( a ) PARTITION ( \"\0user value\" ) select 1"
        );
        assert!(of("merge into t using s on a when not matched then insert (a) overriding system value values (1)").contains("MERGE"));
    }

    #[test]
    fn options_of_sequences_stand_in_any_order() {
        assert_eq!(
            of(
                "create sequence if not exists s.q as bigint start with 3 increment by -2 no maxvalue minvalue - 7 cycle cache 5 owned by none"
            ),
            "create sequence if not exists s . q as bigint increment by - 2 minvalue - 7 no maxvalue start with 3 cache 5 cycle owned by none"
        );
        assert_eq!(
            of("create table t (a int generated always as identity (start 3 increment 2), b int)"),
            "create table t ( a int generated always as identity ( increment 2 start 3 ) , b int )"
        );
        for text in ["create sequence cache", "create sequence q start with", "create sequence q increment 1 start 3 no cycle"] {
            assert_eq!(of(text), text);
        }
    }

    #[test]
    fn other_forms() {
        assert_eq!(of("select 1 from t for no key update of t nowait"), "select 1 from t for update of t nowait");
        assert_eq!(of("select 1 from t for key share"), "select 1 from t for share");
        assert_eq!(of("create unlogged table t"), "create table t");
        assert_eq!(of("alter view if exists v rename to w"), "alter ICEBERG TABLE if exists v rename to w");
        assert_eq!(of("alter view v as select 1"), "alter view v as select 1");
        assert!(of("alter view s.v set schema x").contains("ALTER VIEW ... SET SCHEMA"));
        assert!(of("create table t as execute p (1)").contains("EXECUTE"));
    }
}
