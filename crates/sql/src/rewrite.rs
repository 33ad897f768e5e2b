//! Words of PostgreSQL that sqlparser does not know, rewritten before it reads a statement.
//!
//! Invariant: nothing is rewritten within quotes, nor in a statement that begins with another word.

use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Rewrites a statement that begins with such a word.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut words = tokens.iter().enumerate().filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    let (Some((first, token)), second) = (words.next(), words.next().map(|(at, _)| at)) else { return };
    let Some(word) = crate::parse::word(&token.token) else { return };
    match word.as_str() {
        // PostgreSQL's other word for it.
        "abort" => tokens[first].token = Token::make_keyword("ROLLBACK"),
        "table" => {
            let span = tokens[first].span;
            let select = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            tokens.splice(first..=first, select.map(|token| TokenWithSpan { token, span }));
        }
        // There is nothing to vacuum: what is left of it is ANALYZE.
        "vacuum" if second.is_some_and(|at| is_word(&tokens[at], &["analyze", "analyse"])) => drop(tokens.drain(..second.unwrap_or(0))),
        "begin" | "start" | "set" => without_deferrable(tokens),
        _ => {}
    }
}

fn is_word(token: &TokenWithSpan, words: &[&str]) -> bool {
    crate::parse::word(&token.token).is_some_and(|word| words.contains(&word.as_str()))
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
    fn words_are_rewritten_where_a_statement_begins_with_them() {
        assert_eq!(of("abort"), "ROLLBACK");
        assert_eq!(of("table t order by 1"), "SELECT * FROM t order by 1");
        assert_eq!(of("vacuum analyze t"), "analyze t");
        assert_eq!(of("vacuum t"), "vacuum t");
        assert_eq!(of("select deferrable, abort from t"), "select deferrable , abort from t");
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
