//! Words of PostgreSQL that sqlparser does not know, rewritten before it reads a statement.
//!
//! Invariant: nothing is rewritten within quotes, nor in a statement that begins with another word.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Rewrites a statement that begins with such a word.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    plain_trim(tokens);
    let mut words = tokens.iter().enumerate().filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    let (Some((first, token)), second) = (words.next(), words.next().map(|(at, _)| at)) else { return };
    let Some(word) = crate::parse::word(&token.token) else { return };
    match word.as_str() {
        // PostgreSQL's other word for it.
        "abort" => tokens[first].token = Token::make_keyword("ROLLBACK"),
        // There is nothing to vacuum: what is left of it is ANALYZE.
        "vacuum" if second.is_some_and(|at| is_word(&tokens[at], &["analyze", "analyse"])) => drop(tokens.drain(..second.unwrap_or(0))),
        "begin" | "start" | "set" => without_deferrable(tokens),
        "merge" | "with" | "explain" | "prepare" => marked_merge(tokens),
        "create" => {
            marked_create_as(tokens);
            marked_check_option(tokens);
        }
        _ => {}
    }
}

fn is_word(token: &TokenWithSpan, words: &[&str]) -> bool {
    crate::parse::word(&token.token).is_some_and(|word| words.contains(&word.as_str()))
}

/// The name of a column, or of a value, that stands for DO NOTHING in MERGE. Nobody can write it: a text with its first character is refused.
pub(crate) const NOTHING: &str = "\0nothing";
/// That of a value for DEFAULT VALUES.
pub(crate) const DEFAULTS: &str = "\0default values";

/// The type of a column of CREATE TABLE AS that has none.
pub(crate) const UNTYPED: &str = "\0untyped";
/// What a table inherits from that is made WITH NO DATA.
pub(crate) const NO_DATA: &str = "\0no data";

/// In CREATE TABLE AS a column may be a name alone, and the end may be WITH [NO] DATA.
fn marked_create_as(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF)).collect();
    let is = |at: usize, wanted: &str| words.get(at).is_some_and(|token| is_word(&tokens[*token], &[wanted]));
    let token = |at: usize| words.get(at).map(|token| &tokens[*token].token);
    let mut at = 1;
    while words.get(at).is_some_and(|token| is_word(&tokens[*token], &["global", "local", "temp", "temporary", "unlogged"])) {
        at += 1;
    }
    if !is(at, "table") {
        return;
    }
    at += if is(at + 1, "if") { 5 } else { 2 };
    while token(at) == Some(&Token::Period) {
        at += 2;
    }
    // Columns, and AS behind them.
    let (open, mut depth, mut names) = (at, 0_usize, Vec::new());
    let mut is_in_columns = token(open) == Some(&Token::LParen);
    let mut end_of_columns = open;
    while let Some(found) = token(at) {
        match found {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.saturating_sub(1);
                if depth == 0 && is_in_columns {
                    (is_in_columns, end_of_columns) = (false, at + 1);
                }
            }
            Token::Word(_) if depth == 0 && is(at, "as") => break,
            Token::Word(_) if depth == 1 && is_in_columns => {
                let begins = matches!(token(at - 1), Some(Token::LParen | Token::Comma));
                if begins && matches!(token(at + 1), Some(Token::RParen | Token::Comma)) {
                    names.push(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    let count = words.len();
    if at + 1 >= count {
        return;
    }
    let is_without = count > 3 && is(count - 3, "with") && is(count - 2, "no") && is(count - 1, "data");
    let is_with = count > 2 && is(count - 2, "with") && is(count - 1, "data");
    let mut changes: Vec<(usize, Vec<Token>)> = Vec::new();
    let marker = |name: &str| Token::Word(Word { value: name.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword });
    changes.extend(names.into_iter().map(|name| (words[name] + 1, vec![marker(UNTYPED)])));
    if is_without {
        changes.push((words[end_of_columns], vec![Token::make_keyword("INHERITS"), Token::LParen, marker(NO_DATA), Token::RParen]));
    }
    if is_without || is_with {
        let from = words[count - if is_without { 3 } else { 2 }];
        tokens.drain(from..=words[count - 1]);
    }
    for (place, more) in changes.into_iter().rev() {
        let span = tokens[place.saturating_sub(1)].span;
        tokens.splice(place..place, more.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// `WITH [CASCADED | LOCAL] CHECK OPTION` behind a view becomes one of its options, as which it can be written, too.
fn marked_check_option(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF)).collect();
    let is = |at: usize, wanted: &str| words.get(at).is_some_and(|token| is_word(&tokens[*token], &[wanted]));
    let count = words.len();
    let view = if is(1, "or") { 3 } else { 1 };
    if !is(view, "view") || count < view + 5 || !(is(count - 2, "check") && is(count - 1, "option")) {
        return;
    }
    let (begin, kind) = match () {
        () if is(count - 3, "with") => (count - 3, "cascaded"),
        () if is(count - 4, "with") && is(count - 3, "cascaded") => (count - 4, "cascaded"),
        () if is(count - 4, "with") && is(count - 3, "local") => (count - 4, "local"),
        () => return,
    };
    // The query is behind AS.
    let mut depth = 0_i32;
    let Some(query) = words.iter().position(|at| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && is_word(&tokens[*at], &["as"])
    }) else {
        return;
    };
    let options = (view..query).find(|at| is(*at, "with") && tokens[words[at + 1]].token == Token::LParen);
    let word = |word: &str| Token::Word(Word { value: word.into(), quote_style: None, keyword: Keyword::NoKeyword });
    let option = [word("check_option"), Token::Eq, Token::SingleQuotedString(kind.into())];
    let (place, more) = match options {
        Some(with) => (words[with + 1] + 1, [&option[..], &[Token::Comma]].concat()),
        None => (words[query], [&[Token::make_keyword("WITH"), Token::LParen], &option[..], &[Token::RParen]].concat()),
    };
    tokens.drain(words[begin]..=words[count - 1]);
    let span = tokens[place].span;
    tokens.splice(place..place, more.into_iter().map(|token| TokenWithSpan { token, span }));
}

/// `THEN DO NOTHING` and `INSERT DEFAULT VALUES` of MERGE become an UPDATE, or an INSERT, of what stands for them.
fn marked_merge(tokens: &mut Vec<TokenWithSpan>) {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    if !words.iter().any(|at| is_word(&tokens[*at], &["merge"])) {
        return;
    }
    let is = |at: usize, wanted: &str| words.get(at).is_some_and(|token| is_word(&tokens[*token], &[wanted]));
    let marker = |name: &str| Token::Word(Word { value: name.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword });
    let values = |name: &str| vec![Token::make_keyword("VALUES"), Token::LParen, marker(name), Token::RParen];
    // A clause for what is not matched inserts, all others update.
    let mut inserts = false;
    let mut changes: Vec<(std::ops::RangeInclusive<usize>, Vec<Token>)> = Vec::new();
    for at in 0..words.len() {
        // CASE has another WHEN.
        if is(at, "when") && (is(at + 1, "matched") || is(at + 1, "not") && is(at + 2, "matched")) {
            inserts = is(at + 1, "not") && is(at + 2, "matched") && !(is(at + 3, "by") && is(at + 4, "source"));
        } else if is(at, "then") && is(at + 1, "do") && is(at + 2, "nothing") {
            let mut instead = vec![Token::make_keyword(if inserts { "INSERT" } else { "UPDATE" })];
            if inserts {
                instead.extend(values(NOTHING));
            } else {
                instead.extend([Token::make_keyword("SET"), marker(NOTHING), Token::Eq, Token::make_keyword("NULL")]);
            }
            changes.push((words[at + 1]..=words[at + 2], instead));
        } else if is(at, "then") && is(at + 1, "insert") && is(at + 2, "default") && is(at + 3, "values") {
            changes.push((words[at + 2]..=words[at + 3], values(DEFAULTS)));
        }
    }
    for (place, instead) in changes.into_iter().rev() {
        let span = tokens[*place.start()].span;
        tokens.splice(place, instead.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// `trim([BOTH | LEADING | TRAILING] FROM text)`, without the characters: FROM goes.
fn plain_trim(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while let Some(trim) = tokens[at..].iter().position(|token| is_word(token, &["trim"])).map(|more| at + more) {
        at = trim + 1;
        let mut rest = (at..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)));
        if rest.next().is_none_or(|paren| tokens[paren].token != Token::LParen) {
            continue;
        }
        let mut from = rest.next();
        if from.is_some_and(|at| is_word(&tokens[at], &["both", "leading", "trailing"])) {
            from = rest.next();
        }
        if let Some(from) = from.filter(|at| is_word(&tokens[*at], &["from"])) {
            tokens.remove(from);
        }
    }
}

/// `[NOT] DEFERRABLE` of a transaction says when a snapshot is taken that needs no retry: it changes nothing of what is seen.
fn without_deferrable(tokens: &mut Vec<TokenWithSpan>) {
    let is_of_transaction = tokens.iter().any(|token| is_word(token, &["transaction", "begin", "characteristics"]));
    let Some(at) = tokens.iter().position(|token| is_word(token, &["deferrable"])).filter(|_| is_of_transaction) else { return };
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let before = |tokens: &[TokenWithSpan], at: usize| tokens[..at].iter().rposition(|token| !is_blank(token));
    let after = |tokens: &[TokenWithSpan], at: usize| tokens[at..].iter().position(|token| !is_blank(token)).map(|more| at + more);
    let mut begin = at;
    if let Some(not) = before(tokens, begin).filter(|not| is_word(&tokens[*not], &["not"])) {
        begin = not;
    }
    let mut end = at + 1;
    // One of the commas around it goes, too.
    match before(tokens, begin).filter(|comma| tokens[*comma].token == Token::Comma) {
        Some(comma) => begin = comma,
        None => {
            if let Some(comma) = after(tokens, end).filter(|comma| tokens[*comma].token == Token::Comma) {
                end = comma + 1;
            }
        }
    }
    tokens.drain(begin..end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn of(text: &str) -> String {
        let mut tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap();
        rewrite(&mut tokens);
        let words: Vec<String> = tokens.iter().map(|token| token.token.to_string()).filter(|text| !text.trim().is_empty()).collect();
        words.join(" ").trim_end_matches(" EOF").to_owned()
    }

    #[test]
    fn trim_may_name_no_characters() {
        assert_eq!(
            of("SELECT trim(both FROM a), trim ( from b ), trim(leading 'x' from c), trim from t"),
            "SELECT trim ( both a ) , trim ( b ) , trim ( leading 'x' from c ) , trim from t"
        );
        assert_eq!(of("SELECT trim"), "SELECT trim");
    }

    #[test]
    fn words_are_rewritten_where_a_statement_begins_with_them() {
        assert_eq!(of("abort"), "ROLLBACK");
        assert_eq!(of("vacuum analyze t"), "analyze t");
        assert_eq!(of("vacuum t"), "vacuum t");
        assert_eq!(of("select deferrable, abort from t"), "select deferrable , abort from t");
    }

    #[test]
    fn clauses_of_merge_are_marked() {
        let merge = "merge into t using s on a = b when matched then do nothing when not matched then do nothing";
        let marked = "merge into t using s on a = b when matched then UPDATE SET \"\0nothing\" = NULL when not matched then INSERT VALUES ( \"\0nothing\" )";
        assert_eq!(of(merge), marked);
        assert_eq!(
            of("merge x when not matched by source then do nothing"),
            "merge x when not matched by source then UPDATE SET \"\0nothing\" = NULL"
        );
        assert_eq!(
            of("merge x when not matched then insert default values"),
            "merge x when not matched then insert VALUES ( \"\0default values\" )"
        );
        assert_eq!(
            of("with a as (select 1) insert into t default values on conflict do nothing"),
            "with a as ( select 1 ) insert into t default values on conflict do nothing"
        );
    }

    #[test]
    fn columns_without_types_are_marked_before_as() {
        assert_eq!(
            of("create table t (a, \"B\", c int) as select 1"),
            "create table t ( a \"\0untyped\" , \"B\" \"\0untyped\" , c int ) as select 1"
        );
        assert_eq!(of("create table t (a, b)"), "create table t ( a , b )");
        assert_eq!(
            of("create table t (primary key (a, b)) as select f(a, b)"),
            "create table t ( primary key ( a , b ) ) as select f ( a , b )"
        );
        assert_eq!(
            of("create temp table if not exists s.t (a) with (x = 1) as select 1 with no data"),
            "create temp table if not exists s . t ( a \"\0untyped\" ) INHERITS ( \"\0no data\" ) with ( x = 1 ) as select 1"
        );
        assert_eq!(of("create table t as select 1 with no data"), "create table t INHERITS ( \"\0no data\" ) as select 1");
        assert_eq!(of("create table t as table u with data"), "create table t as table u");
        assert_eq!(of("create table t partition by range (a, b) as select 1"), "create table t partition by range ( a , b ) as select 1");
        assert_eq!(of("create table t with no data"), "create table t with no data");
        assert_eq!(of("create view v as select a from t"), "create view v as select a from t");
    }

    #[test]
    fn the_check_option_of_a_view_is_one_of_its_options() {
        assert_eq!(of("create view v as select 1 with check option"), "create view v WITH ( check_option = 'cascaded' ) as select 1");
        assert_eq!(
            of("create or replace view s.v (a) with (security_barrier) as select 1 as b with local check option"),
            "create or replace view s . v ( a ) with ( check_option = 'local' , security_barrier ) as select 1 as b"
        );
        assert_eq!(of("create view v as select 1 as option"), "create view v as select 1 as option");
        assert_eq!(of("create view check option"), "create view check option");
    }

    #[test]
    fn deferrable_goes_with_its_comma() {
        assert_eq!(of("begin deferrable"), "begin");
        assert_eq!(of("begin not deferrable, read only"), "begin read only");
        assert_eq!(of("start transaction read write, deferrable"), "start transaction read write");
        assert_eq!(
            of("set transaction isolation level serializable, not deferrable, read only"),
            "set transaction isolation level serializable , read only"
        );
        assert_eq!(of("set x = deferrable"), "set x = deferrable");
    }
}
