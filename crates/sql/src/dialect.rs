//! What binds tighter than what, where sqlparser's dialect of PostgreSQL has it otherwise than PostgreSQL:
//!
//! * the right side of `IS [NOT] DISTINCT FROM` ends before AND, OR and NOT: sqlparser takes all that follows;
//! * a sign binds tighter than `^`, COLLATE and AT TIME ZONE, less than `::`;
//! * `BETWEEN SYMMETRIC` is an operator of its own;
//! * behind ANY and ALL, and as the first of a list behind IN, a query may stand in parentheses;
//! * ROLLUP and CUBE are read as calls, so that what begins with a parenthesis in them is an expression as any other;
//! * `INTERVAL(2) '...'` is a literal with digits of a second, which sqlparser does not know;
//! * `~~`, `~` and their like are operators as any other: tighter than LIKE and `=`, as tight as `||`.
//!
//! All else is asked of sqlparser's dialect.
//!
//! Invariant: `IS [NOT] DISTINCT FROM` comes out as an operator of its own, [`DISTINCT`] or [`NOT_DISTINCT`], which is written as it was read.

use sqlparser::ast::{BinaryOperator, CastKind, DataType, Expr, Function, FunctionArguments, UnaryOperator, Value};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::any::TypeId;

/// The operators, as `BinaryOperator::Custom` has them. No text has a token like them.
pub(crate) const DISTINCT: &str = "IS DISTINCT FROM";
pub(crate) const NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// `BETWEEN SYMMETRIC`, whose right side is both bounds with AND between them.
pub(crate) const SYMMETRIC: &str = "BETWEEN SYMMETRIC";
pub(crate) const NOT_SYMMETRIC: &str = "NOT BETWEEN SYMMETRIC";

/// IN of a list that begins with a query in parentheses, which sqlparser takes for all of it.
const IN_LIST: &str = "IN";
const NOT_IN_LIST: &str = "NOT IN";

/// Less than COLLATE, which stands below `[]` and `::`.
const SIGN: u8 = 120;

/// The words of `IS [NOT] DISTINCT FROM` as one operator.
pub(crate) fn join_distinct(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut joined = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let found =
            [(DISTINCT, &[Keyword::DISTINCT, Keyword::FROM][..]), (NOT_DISTINCT, &[Keyword::NOT, Keyword::DISTINCT, Keyword::FROM])]
                .into_iter()
                .filter(|_| is_word(token, Keyword::IS))
                .find_map(|(operator, words)| Some((operator, behind(&tokens, at + 1, words)?)));
        match found {
            Some((operator, end)) => {
                joined.push(TokenWithSpan { token: Token::CustomBinaryOperator(operator.into()), span: token.span });
                at = end;
            }
            None => {
                joined.push(token.clone());
                at += 1;
            }
        }
    }
    joined
}

/// Where each parenthesis is closed, of tokens that mean something.
fn closed(tokens: &[TokenWithSpan], own: &[usize]) -> Vec<usize> {
    let (mut open, mut closed) = (Vec::new(), vec![usize::MAX; own.len()]);
    for (at, place) in own.iter().enumerate() {
        match tokens[*place].token {
            Token::LParen => open.push(at),
            Token::RParen => {
                if let Some(begin) = open.pop() {
                    closed[begin] = at;
                }
            }
            _ => {}
        }
    }
    closed
}

/// IN before a list that begins with a query becomes an operator of its own.
pub(crate) fn mark_lists(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| is_word(token, Keyword::IN)) {
        return tokens;
    }
    let own: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let closed = closed(&tokens, &own);
    let is = |at: usize, token: &Token| own.get(at).is_some_and(|place| tokens[*place].token == *token);
    let begins_query = |at: usize| {
        let is_one = |place: &usize| [Keyword::SELECT, Keyword::WITH, Keyword::VALUES].iter().any(|word| is_word(&tokens[*place], *word));
        is(at, &Token::LParen) || own.get(at).is_some_and(is_one)
    };
    // What makes a larger query of one, or ends it.
    let goes_on = |at: usize| {
        use Keyword as K;
        const MORE: [Keyword; 8] = [K::UNION, K::INTERSECT, K::EXCEPT, K::ORDER, K::LIMIT, K::OFFSET, K::FETCH, K::FOR];
        is(at, &Token::RParen) || own.get(at).is_none_or(|place| MORE.iter().any(|word| is_word(&tokens[*place], *word)))
    };
    let is_list = |at: &usize| {
        let (list, query) = (at + 1, at + 2);
        is_word(&tokens[own[*at]], Keyword::IN)
            && is(list, &Token::LParen)
            && is(query, &Token::LParen)
            && begins_query(query + 1)
            && closed[query].checked_add(1).is_some_and(|behind| !goes_on(behind))
    };
    let lists: Vec<usize> = (0..own.len()).filter(is_list).collect();
    for at in lists.into_iter().rev() {
        let not = at.checked_sub(1).filter(|not| is_word(&tokens[own[*not]], Keyword::NOT));
        let operator = if not.is_some() { NOT_IN_LIST } else { IN_LIST };
        tokens[own[at]].token = Token::CustomBinaryOperator(operator.into());
        if let Some(not) = not {
            tokens.remove(own[not]);
        }
    }
    tokens
}

/// `= ANY ((SELECT ...) ...)`, from the operator on; `None`: it is another form.
fn compared_with_query(parser: &mut Parser<'_>, left: &Expr) -> Option<Result<Expr, ParserError>> {
    let compare_op = match parser.peek_token_ref().token {
        Token::Eq => BinaryOperator::Eq,
        Token::Neq => BinaryOperator::NotEq,
        Token::Lt => BinaryOperator::Lt,
        Token::LtEq => BinaryOperator::LtEq,
        Token::Gt => BinaryOperator::Gt,
        Token::GtEq => BinaryOperator::GtEq,
        _ => return None,
    };
    let word = [Keyword::ANY, Keyword::SOME, Keyword::ALL].into_iter().find(|word| is_word(parser.peek_nth_token_ref(1), *word))?;
    if (2..4).any(|at| parser.peek_nth_token_ref(at).token != Token::LParen) {
        return None;
    }
    (0..3).for_each(|_| drop(parser.next_token()));
    let query = parser.parse_query().and_then(|query| parser.expect_token(&Token::RParen).map(|_| query));
    Some(query.map(|query| {
        let (left, right) = (Box::new(left.clone()), Box::new(Expr::Subquery(query)));
        match word {
            Keyword::ALL => Expr::AllOp { left, compare_op, right },
            word => Expr::AnyOp { left, compare_op, right, is_some: word == Keyword::SOME },
        }
    }))
}

/// The list behind IN.
fn listed(parser: &mut Parser<'_>, of: &Expr, negated: bool) -> Result<Expr, ParserError> {
    parser.next_token();
    parser.expect_token(&Token::LParen)?;
    let list = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::InList { expr: Box::new(of.clone()), list, negated })
}

/// `GROUPING SETS (...)`
fn grouping_sets(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    (0..2).for_each(|_| drop(parser.next_token()));
    parser.expect_token(&Token::LParen)?;
    let sets = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    let set = |expr| match expr {
        Expr::Tuple(exprs) => exprs,
        Expr::Nested(expr) => vec![*expr],
        expr => vec![expr],
    };
    Ok(Expr::GroupingSets(sets.into_iter().map(set).collect()))
}

fn is_word(token: &TokenWithSpan, keyword: Keyword) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == keyword)
}

/// The place behind these words, if they are what stands at one.
fn behind(tokens: &[TokenWithSpan], mut at: usize, words: &[Keyword]) -> Option<usize> {
    for word in words {
        while matches!(tokens.get(at)?.token, Token::Whitespace(_)) {
            at += 1;
        }
        if !is_word(&tokens[at], *word) {
            return None;
        }
        at += 1;
    }
    Some(at)
}

/// `INTERVAL(2) '...'`, as a cast of the text; `None` for what is another form.
fn interval_with_digits(parser: &mut Parser<'_>) -> Option<Expr> {
    let at = |n: usize| &parser.peek_nth_token_ref(n).token;
    let (Token::LParen, Token::Number(digits, _), Token::RParen, Token::SingleQuotedString(text)) = (at(1), at(2), at(3), at(4)) else {
        return None;
    };
    let precision = Some(digits.parse().ok()?);
    let text = Value::SingleQuotedString(text.clone()).with_span(parser.peek_nth_token_ref(4).span);
    (0..5).for_each(|_| drop(parser.next_token()));
    let data_type = DataType::Interval { fields: None, precision };
    Some(Expr::Cast { kind: CastKind::Cast, expr: Box::new(Expr::Value(text)), data_type, array: false, format: None })
}

/// Words that are calls without parentheses, of which sqlparser makes columns.
fn is_call_alone(word: &Word) -> bool {
    word.quote_style.is_none() && ["current_role", "current_schema"].iter().any(|name| word.value.eq_ignore_ascii_case(name))
}

fn call_alone(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    if matches!(parser.peek_nth_token_ref(1).token, Token::LParen | Token::Period) {
        return None;
    }
    Some(parser.parse_identifier().map(|name| {
        Expr::Function(Function {
            name: vec![name].into(),
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::None,
            null_treatment: None,
            filter: None,
            over: None,
            within_group: Vec::new(),
        })
    }))
}

/// PostgreSQL's dialect.
#[derive(Debug)]
pub(crate) struct Postgres;

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// What sqlparser's dialect says, too.
macro_rules! as_base {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            BASE.$name()
        })*
    };
}

impl Dialect for Postgres {
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let op = match parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            Token::Word(ref word) if word.keyword == Keyword::INTERVAL => return interval_with_digits(parser).map(Ok),
            Token::Word(ref word) if is_call_alone(word) => return call_alone(parser),
            Token::Word(ref word) if word.keyword == Keyword::GROUPING && is_word(parser.peek_nth_token_ref(1), Keyword::SETS) => {
                return Some(grouping_sets(parser));
            }
            // A set without keys.
            Token::LParen if parser.peek_nth_token_ref(1).token == Token::RParen => {
                (0..2).for_each(|_| drop(parser.next_token()));
                return Some(Ok(Expr::Tuple(Vec::new())));
            }
            _ => return None,
        };
        parser.next_token();
        Some(parser.parse_subexpr(SIGN).map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, left: &Expr, _: u8) -> Option<Result<Expr, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::CustomBinaryOperator(operator) if operator == IN_LIST => return Some(listed(parser, left, false)),
            Token::CustomBinaryOperator(operator) if operator == NOT_IN_LIST => return Some(listed(parser, left, true)),
            _ => {}
        }
        if let Some(compared) = compared_with_query(parser, left) {
            return Some(compared);
        }
        let is = |at: usize, word: &str| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(own) if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word));
        let not = usize::from(is(0, "not"));
        if !is(not, "between") || !is(not + 1, "symmetric") && !is(not + 1, "asymmetric") {
            return None;
        }
        let is_symmetric = is(not + 1, "symmetric");
        (0..not + 2).for_each(|_| drop(parser.next_token()));
        let between = parser.parse_between(left.clone(), not == 1);
        Some(between.map(|between| match between {
            // It is written as it was read.
            Expr::Between { expr, negated, low, high } if is_symmetric => Expr::BinaryOp {
                left: expr,
                op: BinaryOperator::Custom(if negated { NOT_SYMMETRIC } else { SYMMETRIC }.into()),
                right: Box::new(Expr::BinaryOp { left: low, op: BinaryOperator::And, right: high }),
            },
            other => other,
        }))
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::CustomBinaryOperator(operator) if operator == IN_LIST || operator == NOT_IN_LIST => {
                Some(Ok(self.prec_value(Precedence::Between)))
            }
            Token::CustomBinaryOperator(operator) if operator == DISTINCT || operator == NOT_DISTINCT => {
                Some(Ok(self.prec_value(Precedence::Is)))
            }
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => Some(Ok(self.prec_value(Precedence::PgOther))),
            _ => BASE.get_next_precedence(parser),
        }
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        BASE.is_delimited_identifier_start(c)
    }

    fn is_identifier_start(&self, c: char) -> bool {
        BASE.is_identifier_start(c)
    }

    fn is_identifier_part(&self, c: char) -> bool {
        BASE.is_identifier_part(c)
    }

    fn is_custom_operator_part(&self, c: char) -> bool {
        BASE.is_custom_operator_part(c)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        BASE.is_reserved_for_identifier(keyword)
    }

    as_base!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_named_fn_args_with_expr_name,
        supports_empty_projections,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_set_names,
        supports_alter_column_type_using,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
        supports_comment_optimizer_hint,
    );
}
