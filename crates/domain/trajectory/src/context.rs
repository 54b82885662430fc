//! What a client says about a task beside the question.

use std::time::SystemTime;

use crate::invalid_context::{InvalidContext, MAX_KNOWLEDGE_BYTES};
use crate::time::is_in_calendar;
use crate::time_zone::TimeZone;

/// Of a task's and of a profile's name, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// Of a task's description and of a profile's biography, in bytes.
const MAX_TEXT_BYTES: usize = 4096;
/// Of an answer format, an audience and one instruction, in bytes.
const MAX_LINE_BYTES: usize = 512;
/// Instructions of one task.
const MAX_INSTRUCTIONS: usize = 16;
/// Knowledge bases of one task.
const MAX_KNOWLEDGE: usize = 16;

/// What kind of task a question belongs to: the part of AutoAct's target task information S that
/// holds for all its questions. An empty field is not set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TaskInfo {
    /// M: the task's name.
    pub name: String,
    /// P: what the task is.
    pub description: String,
    /// What an answer looks like, for example "one word" or "a number with its unit".
    pub answer_format: String,
}

/// Who the group speaks as, and for whom. An empty field is not set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Profile {
    /// Who the group speaks as.
    pub name: String,
    /// What that person or agent is and knows.
    pub bio: String,
    /// For whom the answer is.
    pub audience: String,
}

/// What a client says about a task beside the question. Every part is optional; agents read the
/// parts that are set, but for [`knowledge`](Self::knowledge).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TaskContext {
    /// The kind of task.
    pub task: TaskInfo,
    /// Who the group speaks as, and for whom.
    pub profile: Profile,
    /// Rules for the group, in their order.
    pub instructions: Vec<String>,
    /// Names of the knowledge bases that the task refers to. They are kept with the task and are no
    /// part of a prompt.
    pub knowledge: Vec<String>,
    /// The point in time that the question is asked at.
    pub now: Option<SystemTime>,
    /// Where the client's clock is.
    pub time_zone: Option<TimeZone>,
}

impl TaskContext {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == TaskContext::default()
    }

    /// Checks every field against its bounds.
    ///
    /// # Errors
    /// Names the first field that is out of bounds.
    pub fn check(&self) -> Result<(), InvalidContext> {
        let TaskContext { task, profile, instructions, knowledge, now, time_zone: _ } = self;
        text("context.task.name", &task.name, MAX_NAME_BYTES)?;
        text("context.task.description", &task.description, MAX_TEXT_BYTES)?;
        text("context.task.answer_format", &task.answer_format, MAX_LINE_BYTES)?;
        text("context.profile.name", &profile.name, MAX_NAME_BYTES)?;
        text("context.profile.bio", &profile.bio, MAX_TEXT_BYTES)?;
        text("context.profile.audience", &profile.audience, MAX_LINE_BYTES)?;
        count("context.instructions", instructions.len(), MAX_INSTRUCTIONS)?;
        for instruction in instructions {
            text("context.instructions", instruction, MAX_LINE_BYTES)?;
            if instruction.trim().is_empty() {
                return Err(InvalidContext::Empty { field: "context.instructions" });
            }
        }
        count("context.knowledge", knowledge.len(), MAX_KNOWLEDGE)?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let named = |name: &&String| !(1..=MAX_KNOWLEDGE_BYTES).contains(&name.len()) || !name.bytes().all(allowed);
        if let Some(bad) = knowledge.iter().find(named) {
            return Err(InvalidContext::Knowledge { shown: bad.chars().take(MAX_KNOWLEDGE_BYTES + 1).collect() });
        }
        if now.is_some_and(|now| !is_in_calendar(now)) {
            return Err(InvalidContext::Now);
        }
        Ok(())
    }
}

fn text(field: &'static str, text: &str, most: usize) -> Result<(), InvalidContext> {
    if text.len() > most {
        return Err(InvalidContext::TooLong { field, bytes: text.len(), most });
    }
    match text.char_indices().find(|(_, c)| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        Some((at, c)) => Err(InvalidContext::Control { field, code: u32::from(c), at }),
        None => Ok(()),
    }
}

fn count(field: &'static str, count: usize, most: usize) -> Result<(), InvalidContext> {
    if count > most { Err(InvalidContext::TooMany { field, count, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn every_bound_is_exact() {
        type Set = fn(&mut TaskContext, String);
        let texts: [(&str, usize, Set); 7] = [
            ("context.task.name", MAX_NAME_BYTES, |context, text| context.task.name = text),
            ("context.task.description", MAX_TEXT_BYTES, |context, text| context.task.description = text),
            ("context.task.answer_format", MAX_LINE_BYTES, |context, text| context.task.answer_format = text),
            ("context.profile.name", MAX_NAME_BYTES, |context, text| context.profile.name = text),
            ("context.profile.bio", MAX_TEXT_BYTES, |context, text| context.profile.bio = text),
            ("context.profile.audience", MAX_LINE_BYTES, |context, text| context.profile.audience = text),
            ("context.instructions", MAX_LINE_BYTES, |context, text| context.instructions = vec![text]),
        ];
        for (field, most, set) in texts {
            let with = |text: String| {
                let mut context = TaskContext::default();
                set(&mut context, text);
                context.check()
            };
            assert_eq!(with("é".repeat(most / 2)), Ok(()));
            assert_eq!(with("x".repeat(most + 1)), Err(InvalidContext::TooLong { field, bytes: most + 1, most }));
            assert_eq!(with("a\u{1b}[2J".into()), Err(InvalidContext::Control { field, code: 27, at: 1 }));
            assert_eq!(with("two\r\n\tlines".into()), Ok(()));
        }
    }

    #[test]
    fn lists_have_bounds_and_no_empty_entries() {
        let instructions = |entries: usize, text: &str| TaskContext { instructions: vec![text.into(); entries], ..TaskContext::default() };
        assert_eq!(instructions(MAX_INSTRUCTIONS, "x").check(), Ok(()));
        assert!(matches!(instructions(MAX_INSTRUCTIONS + 1, "x").check(), Err(InvalidContext::TooMany { count: 17, most: 16, .. })));
        assert!(matches!(instructions(1, " \n").check(), Err(InvalidContext::Empty { .. })));
        let knowledge = |entries: usize, text: &str| TaskContext { knowledge: vec![text.into(); entries], ..TaskContext::default() };
        assert_eq!(knowledge(MAX_KNOWLEDGE, "atlas-2.v1_b").check(), Ok(()));
        assert!(matches!(knowledge(MAX_KNOWLEDGE + 1, "atlas").check(), Err(InvalidContext::TooMany { .. })));
        for bad in ["", "a b", "a/b", "é", &"x".repeat(MAX_KNOWLEDGE_BYTES + 1)] {
            assert!(matches!(knowledge(1, bad).check(), Err(InvalidContext::Knowledge { .. })), "{bad}");
        }
    }

    #[test]
    fn a_point_in_time_has_a_date() {
        let at = |now| TaskContext { now: Some(now), ..TaskContext::default() }.check();
        assert_eq!(at(UNIX_EPOCH + Duration::from_secs(253_402_300_799)), Ok(()));
        assert_eq!(at(UNIX_EPOCH + Duration::from_secs(253_402_300_800)), Err(InvalidContext::Now));
        assert_eq!(at(UNIX_EPOCH - Duration::from_secs(62_135_596_800)), Ok(()));
        assert_eq!(at(UNIX_EPOCH - Duration::from_secs(62_135_596_801)), Err(InvalidContext::Now));
    }
}
