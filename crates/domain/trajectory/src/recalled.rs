//! What was recalled of a task's conversation before its first plan, and the box that bounds it.

use std::collections::BTreeSet;
use std::time::SystemTime;

use crate::bounds::MAX_RECALLED_BYTES;

/// What an item takes beside its texts, at most: its labels in a prompt, its numbers and tags in an
/// event.
const ITEM_OVERHEAD_BYTES: usize = 64;

/// As what a finished task was remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecalledKind {
    /// A turn of the conversation: it is like the question, near one that is, or the last.
    Turn,
    /// A task of the conversation: it is like the question, and recent ones count more.
    Task,
    /// Something that this program does not know.
    Other,
}

impl RecalledKind {
    /// The kind's name for people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            RecalledKind::Turn => "turn",
            RecalledKind::Task => "task",
            RecalledKind::Other => "other",
        }
    }
}

/// An earlier task of the same conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledItem {
    /// As what it was remembered.
    pub kind: RecalledKind,
    /// The task.
    pub task_id: String,
    /// What was asked.
    pub question: String,
    /// What the group answered.
    pub answer: String,
    /// Reflect-Agent approved the answer.
    pub approved: bool,
    /// When the task ended.
    pub finished_at: Option<SystemTime>,
    /// How well it fits; comparable among items of one kind in one event. 0: it is there for its
    /// place.
    pub score: f64,
}

impl RecalledItem {
    /// What it takes of the box: no less than its bytes in a prompt and in an event.
    pub fn bytes(&self) -> usize {
        self.task_id.len() + self.question.len() + self.answer.len() + ITEM_OVERHEAD_BYTES
    }
}

/// What was recalled before the first plan. Agents are given the items; a task recalls once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recalled {
    /// In order of rank.
    pub items: Vec<RecalledItem>,
    /// Items that were found and are not in the box.
    pub left_out: u32,
    /// Why nothing was recalled; empty: nothing went wrong.
    pub failure: String,
}

impl Recalled {
    /// A box of at most `most` bytes, filled in order of rank with whole items: one that does not
    /// fit any more is left out, and a smaller one after it may still fit. A task that was found
    /// twice is one item, at its better rank.
    pub fn boxed(ranked: impl IntoIterator<Item = RecalledItem>, most: usize) -> Recalled {
        let mut room = most.min(MAX_RECALLED_BYTES);
        let (mut recalled, mut known) = (Recalled::default(), BTreeSet::new());
        for item in ranked {
            if !known.insert(item.task_id.clone()) {
                continue;
            }
            match room.checked_sub(item.bytes()) {
                Some(rest) => {
                    room = rest;
                    recalled.items.push(item);
                }
                None => recalled.left_out = recalled.left_out.saturating_add(1),
            }
        }
        recalled
    }

    /// Nothing, because of this.
    pub fn failed(failure: impl Into<String>) -> Recalled {
        let (failure, _) = crate::bounds::cut(failure.into(), crate::bounds::MAX_DETAIL_BYTES);
        Recalled { failure, ..Recalled::default() }
    }

    /// What the items take of the box.
    pub fn bytes(&self) -> usize {
        bytes_of(&self.items)
    }

    /// Leaves out the item of the lowest rank; false where there is none.
    pub fn drop_last(&mut self) -> bool {
        let dropped = self.items.pop().is_some();
        self.left_out = self.left_out.saturating_add(u32::from(dropped));
        dropped
    }
}

/// What items take of the box.
pub fn bytes_of(items: &[RecalledItem]) -> usize {
    items.iter().map(RecalledItem::bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(task_id: String, question: String, answer: String) -> RecalledItem {
        RecalledItem { kind: RecalledKind::Turn, task_id, question, answer, approved: true, finished_at: None, score: 1.0 }
    }

    prop_compose! {
        fn found()(id in "[a-e]{1,2}", question in ".{0,40}", answer in ".{0,60}") -> RecalledItem {
            item(id, question, answer)
        }
    }

    proptest! {
        #[test]
        fn a_box_holds_whole_items_within_its_bound(ranked in prop::collection::vec(found(), 0..20), most in 0_usize..2000) {
            let recalled = Recalled::boxed(ranked.clone(), most);
            prop_assert!(recalled.bytes() <= most);
            // whole, once each, and in order of rank
            let mut places = Vec::new();
            for item in &recalled.items {
                let place = ranked.iter().position(|found| found.task_id == item.task_id).unwrap();
                prop_assert_eq!(item, &ranked[place]);
                places.push(place);
            }
            prop_assert!(places.is_sorted_by(|one, next| one < next));
            // everything is in the box or counted
            let distinct: BTreeSet<&str> = ranked.iter().map(|item| item.task_id.as_str()).collect();
            prop_assert_eq!(recalled.items.len() + recalled.left_out as usize, distinct.len());
            // and nothing that is left out would have fitted when its turn came
            for id in distinct.into_iter().filter(|id| recalled.items.iter().all(|kept| kept.task_id != *id)) {
                let first = ranked.iter().find(|item| item.task_id == id).unwrap();
                prop_assert!(recalled.bytes() + first.bytes() > most);
            }
        }
    }

    #[test]
    fn no_box_is_larger_than_an_event_may_hold() {
        let large = |id: usize| item(id.to_string(), "q".repeat(10_000), String::new());
        assert_eq!(Recalled::boxed((0..9).map(large), usize::MAX).items.len(), 3);
    }
}
