//! Values as text: what CSV holds, what commands take and print.
//!
//! Each type has one canonical text, the one that is written; [`is_canonical`] says whether a text is it, which is what type inference needs
//! to give a file back unchanged. Reading takes more (`+7`, `007`, `TRUE`, `2024-01-01T00:00:00Z`), but never loses digits.
//!
//! | Type | Canonical text |
//! |---|---|
//! | integers | no sign but `-`, no leading zeros |
//! | DECIMAL(p,s) | exactly s digits behind the point, one or more before it |
//! | REAL, DOUBLE | the shortest digits that read back as the same number; an exponent below 1e-5 and from 1e16; `NaN`, `Infinity`, `-Infinity` |
//! | DATE | `2024-02-29`; years outside 0000 to 9999 with a sign |
//! | TIME, TIMESTAMP | `23:59:59`, `2024-02-29 23:59:59`, with as many decimals as the unit has; WITH TIME ZONE in UTC, `+00` behind |
//! | BOOLEAN | `true`, `false` |
//! | UUID | lower-case, with hyphens |
//! | BYTEA | `\x` and lower-case hexadecimal digits |
//! | CHAR, VARCHAR | itself |

mod binary;
mod date_time;
mod float;
mod number;
mod read;
mod write;

pub use date_time::{civil_from_days, days_from_civil};
pub use read::{TextError, is_canonical, parse};
pub use write::{to_text, write};
