//! What columns without a name are called, as in PostgreSQL.

use crate::parse::identifier;
use sqlparser::ast::{self, SelectItem, SetExpr};

const NONE: &str = "?column?";

/// The name of a column that has none.
pub(super) fn output_name(expr: &ast::Expr) -> String {
    name(expr).map_or_else(|| NONE.into(), |(name, _)| name)
}

/// A name, and whether it is one that a cast, or CASE, does not replace.
fn name(expr: &ast::Expr) -> Option<(String, bool)> {
    use ast::Expr as Node;
    let strong = |name: &str| Some((name.to_owned(), true));
    match expr {
        Node::Identifier(name) => strong(&identifier(name)),
        Node::CompoundIdentifier(names) => names.last().and_then(|name| strong(&identifier(name))),
        Node::Function(call) => call.name.0.last().and_then(|name| strong(&name.to_string().trim_matches('"').to_lowercase())),
        Node::Nested(inner) => name(inner),
        Node::Collate { expr, .. } => name(expr),
        Node::Cast { expr, data_type, .. } => match name(expr) {
            Some((own, true)) => Some((own, true)),
            weak => type_name(data_type).map(|name| (name, false)).or(weak),
        },
        Node::TypedString(typed) => type_name(&typed.data_type).map(|name| (name, false)),
        Node::Interval(_) => Some(("interval".into(), false)),
        Node::Case { else_result, .. } => match else_result.as_ref().and_then(|otherwise| name(otherwise)) {
            Some((own, true)) => Some((own, true)),
            _ => Some(("case".into(), false)),
        },
        Node::Exists { .. } => strong("exists"),
        Node::Extract { .. } => strong("extract"),
        Node::Substring { shorthand, .. } => strong(if *shorthand { "substr" } else { "substring" }),
        Node::Overlay { .. } => strong("overlay"),
        Node::Trim { trim_where, .. } => strong(match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        Node::Position { .. } => strong("position"),
        Node::Ceil { .. } => strong("ceil"),
        Node::Floor { .. } => strong("floor"),
        Node::AtTimeZone { .. } => strong("timezone"),
        Node::Subquery(query) => match &*query.body {
            SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::UnnamedExpr(expr)) => name(expr),
                Some(SelectItem::ExprWithAlias { alias, .. }) => strong(&identifier(alias)),
                _ => None,
            },
            SetExpr::Values(_) => strong("column1"),
            _ => None,
        },
        _ => None,
    }
}

/// A type as PostgreSQL's catalog calls it.
fn type_name(data_type: &ast::DataType) -> Option<String> {
    use ast::{DataType as Type, TimezoneInfo};
    let name = match data_type {
        Type::Boolean | Type::Bool => "bool",
        Type::SmallInt(_) | Type::Int2(_) => "int2",
        Type::Int(_) | Type::Int4(_) | Type::Integer(_) => "int4",
        Type::BigInt(_) | Type::Int8(_) => "int8",
        Type::Real | Type::Float4 => "float4",
        Type::Float(ast::ExactNumberInfo::Precision(bits)) if *bits <= 24 => "float4",
        Type::Float(_) | Type::Double(_) | Type::DoublePrecision | Type::Float8 => "float8",
        Type::Numeric(_) | Type::Decimal(_) | Type::Dec(_) => "numeric",
        Type::Char(_) | Type::Character(_) => "bpchar",
        Type::Varchar(_) | Type::CharacterVarying(_) | Type::CharVarying(_) => "varchar",
        Type::Text => "text",
        Type::Bytea => "bytea",
        Type::Uuid => "uuid",
        Type::Date => "date",
        Type::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => "time",
        Type::Time(..) => "timetz",
        Type::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => "timestamp",
        Type::Timestamp(..) => "timestamptz",
        Type::Interval { .. } => "interval",
        Type::Custom(name, _) => return name.0.last().map(|name| name.to_string().trim_matches('"').to_lowercase()),
        _ => return None,
    };
    Some(name.into())
}
