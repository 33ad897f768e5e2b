//! Lines of the Prometheus text format, as far as they make sense: what is none is passed over.

/// A value with its name and labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What is counted.
    pub name: String,
    /// Of what.
    pub labels: Vec<(String, String)>,
    /// How much.
    pub value: f64,
}

impl Sample {
    /// The value of a label; nothing when there is none.
    #[must_use]
    pub fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(label, _)| label == name).map_or("", |(_, value)| value.as_str())
    }
}

/// All samples of a text, in its order.
#[must_use]
pub fn parse_metrics(text: &str) -> Vec<Sample> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect()
}

fn sample(line: &str) -> Option<Sample> {
    let line = line.trim();
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).unwrap_or(line.len());
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(behind) = rest.strip_prefix('}') {
                rest = behind;
                break;
            }
            let (label, quoted) = rest.split_once("=\"")?;
            let (value, behind) = unquoted(quoted)?;
            labels.push((label.trim().to_owned(), value));
            rest = behind;
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then(|| Sample { name: name.to_owned(), labels, value })
}

/// A label's value up to its quote, and what is behind that.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((out, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => out.push('\n'),
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(name: &str, labels: &[(&str, &str)], value: f64) -> Sample {
        let labels = labels.iter().map(|(label, value)| (label.to_string(), value.to_string())).collect();
        Sample { name: name.into(), labels, value }
    }

    #[test]
    fn samples_are_read_and_the_rest_is_passed_over() {
        let text = "# HELP a what it is\n# TYPE a gauge\na 1\nb{x=\"y\"} 2.5\nc{x=\"a \\\"b\\\" \\\\ \\n\",y=\"}\"} 3e2 1700000000\n\nno value\n{x=\"y\"} 1\nd{x=\"open 1\ne{x} 1\nf{} 7\n";
        let expected = [
            labelled("a", &[], 1.0),
            labelled("b", &[("x", "y")], 2.5),
            labelled("c", &[("x", "a \"b\" \\ \n"), ("y", "}")], 300.0),
            labelled("f", &[], 7.0),
        ];
        assert_eq!(parse_metrics(text), expected);
        assert_eq!((expected[2].label("y"), expected[2].label("z")), ("}", ""));
    }

    #[test]
    fn any_text_is_read_without_a_panic() {
        let whole = "pagefold_x{a=\"b\\\"c\",d=\"e\"} 12\n";
        for cut in 0..whole.len() {
            for character in ["{", "}", "\"", "\\", "=", ",", " ", "é", "\n"] {
                let _ = parse_metrics(&format!("{}{character}{}", &whole[..cut], &whole[cut..]));
            }
        }
    }
}
