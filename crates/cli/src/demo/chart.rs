//! Bar charts as inline SVG. Colours come from the page's style sheet, so that they follow light and dark.

use std::fmt::Write;

/// One bar.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    /// As it is written behind the bar.
    pub(super) text: String,
    /// Class of the style sheet: `a` to `c`.
    pub(super) class: &'static str,
    /// A mark on the bar's scale: what was foretold.
    pub(super) mark: Option<f64>,
}

/// Bars under a common heading.
pub(super) struct Group {
    pub(super) title: String,
    pub(super) bars: Vec<Bar>,
}

const WIDTH: f64 = 560.0;
const LABEL_WIDTH: f64 = 108.0;
const TEXT_WIDTH: f64 = 104.0;
const BAR_HEIGHT: f64 = 18.0;
const BAR_STEP: f64 = 25.0;
const TITLE_STEP: f64 = 27.0;
const GROUP_GAP: f64 = 12.0;

/// What HTML and SVG would take for markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Horizontal bars; every group has a scale of its own when `own_scales`.
pub(super) fn bars(description: &str, groups: &[Group], own_scales: bool) -> String {
    let height: f64 =
        groups.iter().map(|g| if g.title.is_empty() { 0.0 } else { TITLE_STEP } + g.bars.len() as f64 * BAR_STEP + GROUP_GAP).sum::<f64>();
    let largest = |bars: &[Bar]| bars.iter().map(|b| b.value.max(b.mark.unwrap_or(0.0))).fold(0.0, f64::max);
    let common = groups.iter().map(|g| largest(&g.bars)).fold(0.0, f64::max);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\"><title>{}</title>",
        escape(description),
        escape(description)
    );
    let room = WIDTH - LABEL_WIDTH - TEXT_WIDTH;
    let mut y = 0.0;
    for group in groups {
        if !group.title.is_empty() {
            let _ = write!(out, "<text class=\"group\" x=\"0\" y=\"{:.1}\">{}</text>", y + 16.0, escape(&group.title));
            y += TITLE_STEP;
        }
        let scale = if own_scales { largest(&group.bars) } else { common };
        for bar in &group.bars {
            let x_of = |value: f64| if scale > 0.0 { room * value / scale } else { 0.0 };
            let width = x_of(bar.value).max(1.0);
            let middle = y + BAR_HEIGHT / 2.0 + 4.5;
            let _ = write!(out, "<text class=\"label\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>", LABEL_WIDTH - 10.0, escape(&bar.label));
            let _ =
                write!(out, "<rect class=\"track\" x=\"{LABEL_WIDTH}\" y=\"{y:.1}\" width=\"{room}\" height=\"{BAR_HEIGHT}\" rx=\"3\"/>");
            let _ = write!(
                out,
                "<rect class=\"{}\" x=\"{LABEL_WIDTH}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\" rx=\"3\"/>",
                bar.class
            );
            if let Some(mark) = bar.mark {
                let x = LABEL_WIDTH + x_of(mark);
                let _ = write!(
                    out,
                    "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                    y - 3.0,
                    y + BAR_HEIGHT + 3.0
                );
            }
            let _ =
                write!(out, "<text class=\"value\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>", LABEL_WIDTH + room + 10.0, escape(&bar.text));
            y += BAR_STEP;
        }
        y += GROUP_GAP;
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: f64, mark: Option<f64>) -> Bar {
        Bar { label: label.into(), value, text: format!("{value}"), class: "a", mark }
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let group = |value: f64| Group { title: "<t>".into(), bars: vec![bar("x", value, Some(value)), bar("y", value / 2.0, None)] };
        let room = WIDTH - LABEL_WIDTH - TEXT_WIDTH;
        let own = bars("sizes", &[group(10.0), group(5.0)], true);
        assert_eq!(own.matches(&format!("class=\"a\" x=\"{LABEL_WIDTH}\"")).count(), 4);
        assert_eq!(own.matches(&format!("width=\"{room:.1}\" height")).count(), 2);
        let common = bars("sizes", &[group(10.0), group(5.0)], false);
        assert_eq!(common.matches(&format!("width=\"{room:.1}\" height")).count(), 1);
        assert!(own.contains("&lt;t&gt;") && !own.contains("<t>") && own.ends_with("</svg>"));
        assert!(!bars("nothing", &[Group { title: String::new(), bars: vec![bar("x", 0.0, None)] }], true).contains("NaN"));
    }
}
