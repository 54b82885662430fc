//! How tools were chosen from a large library, for people and programs.

use autoact_wire::v1;
use serde_json::{Value, json};

use crate::text::plain_line;

/// One line: what was chosen with its scores, and from how many. Scores are 0 to 1.
pub(crate) fn line(choice: &v1::ToolChoice) -> String {
    let chosen: Vec<String> =
        choice.ranked.iter().filter(|tool| tool.chosen).map(|tool| format!("{} {:.2}", plain_line(&tool.name), tool.score)).collect();
    let chosen = if chosen.is_empty() { "none fits".to_owned() } else { chosen.join(", ") };
    format!("{chosen} (of {})", choice.among)
}

/// A table of the ranked tools.
pub(crate) fn table(choice: &v1::ToolChoice) -> String {
    let width = choice.ranked.iter().map(|tool| plain_line(&tool.name).chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!("  {:<width$}  score  words  meaning\n", "tool");
    for tool in &choice.ranked {
        let meaning = tool.meaning.map_or_else(|| "-".to_owned(), |meaning| format!("{meaning:.2}"));
        let mark = if tool.chosen { "" } else { "  (not chosen)" };
        text.push_str(&format!("  {:<width$}  {:>5.2}  {:>5.2}  {meaning:>7}{mark}\n", plain_line(&tool.name), tool.score, tool.words));
    }
    text
}

/// For programs. Fields may be added.
pub(crate) fn object(choice: &v1::ToolChoice) -> Value {
    let ranked: Vec<Value> = choice
        .ranked
        .iter()
        .map(|tool| json!({ "name": tool.name, "score": tool.score, "words": tool.words, "meaning": tool.meaning, "chosen": tool.chosen }))
        .collect();
    json!({ "among": choice.among, "ranked": ranked })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_told_with_its_scores() {
        let tool = |name: &str, meaning, chosen| v1::RankedTool { name: name.into(), score: 0.5, words: 0.25, meaning, chosen };
        let choice = v1::ToolChoice { among: 300, ranked: vec![tool("Weather", Some(0.75), true), tool("Shout", None, false)] };
        assert_eq!(line(&choice), "Weather 0.50 (of 300)");
        let lines: Vec<String> = table(&choice).lines().map(str::to_owned).collect();
        assert_eq!(lines[1], "  Weather   0.50   0.25     0.75");
        assert_eq!(lines[2], "  Shout     0.50   0.25        -  (not chosen)");
        assert_eq!(line(&v1::ToolChoice { among: 9, ranked: Vec::new() }), "none fits (of 9)");
        assert_eq!(object(&choice)["ranked"][1]["meaning"], Value::Null);
    }
}
