//! What was recalled of a conversation, for people.

use autoact_wire::v1;

use crate::text::{cut, plain_line};

/// Columns of an item: its question and its answer are told from another, not read here.
const COLUMNS: usize = 160;

/// The event: how much was recalled, and a line for each item, the best first. `None` where there
/// was nothing and nothing went wrong.
pub(crate) fn shown(recalled: &v1::Recalled) -> Option<String> {
    let v1::Recalled { items, left_out, failure } = recalled;
    if !failure.is_empty() {
        return Some(format!("nothing: {}", plain_line(failure)));
    }
    let count = match (items.len(), left_out) {
        (0, 0) => return None,
        (1, _) => "1 earlier answer".to_owned(),
        (count, _) => format!("{count} earlier answers"),
    };
    let rest = if *left_out == 0 { String::new() } else { format!(" ({left_out} more had no room)") };
    let lines = items.iter().map(|item| format!("\n  {}", line(item)));
    Some(format!("{count} of this conversation{rest}{}", lines.collect::<String>()))
}

fn line(item: &v1::RecalledItem) -> String {
    let kind = if item.kind() == v1::RecalledKind::Task { "task" } else { "turn" };
    let mark = if item.approved { "" } else { "  (not approved)" };
    format!("{kind}  {}{mark}", cut(&format!("{} → {}", plain_line(&item.question), plain_line(&item.answer)), COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recalled_is_told_in_lines() {
        let item = |question: &str, approved| v1::RecalledItem {
            kind: v1::RecalledKind::Turn as i32,
            question: question.into(),
            answer: "the\n\u{1b}Loire".into(),
            approved,
            ..v1::RecalledItem::default()
        };
        let recalled = v1::Recalled { items: vec![item("Which river?", true), item("And?", false)], left_out: 3, failure: String::new() };
        let expected = "2 earlier answers of this conversation (3 more had no room)\n  turn  Which river? → the \u{fffd}Loire\n  \
                        turn  And? → the \u{fffd}Loire  (not approved)";
        assert_eq!(shown(&recalled).as_deref(), Some(expected));
        assert_eq!(shown(&v1::Recalled::default()), None);
        let failed = v1::Recalled { failure: "memory is away".into(), ..v1::Recalled::default() };
        assert_eq!(shown(&failed).as_deref(), Some("nothing: memory is away"));
    }
}
