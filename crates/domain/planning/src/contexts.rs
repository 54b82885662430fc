//! How much of a history the models can read.

use std::time::Duration;

use async_trait::async_trait;
use autoact_prompt::{Expect, described, most_recalled_bytes, transcript};
use autoact_trajectory::{PromptSize, Role, Step, TaskKey, Trajectory, Turn};

use crate::failure::Failure;

/// The most that a chat template and the duties in its system message add to a prompt, the tools'
/// texts left out.
const TEMPLATE_BYTES: usize = 512;
/// Steps that are left out of the prompt with the fixed parts: as many digits as a note can have.
const MANY_STEPS: u32 = 999;

/// The contexts of the three models, wherever they run.
#[async_trait]
pub trait Contexts: Send + Sync {
    /// The most tokens that a prompt of `role` and its reply may have together, where that is known
    /// without asking.
    fn room(&self, role: Role) -> Option<usize>;

    /// The prompt that `role` would be asked with. `time_left` is how long the caller can wait.
    async fn measure(&self, role: Role, task: &TaskKey, trajectory: &Trajectory, time_left: Duration) -> Result<PromptSize, Failure>;
}

/// The sizes of the roles' prompts. A role that cannot say is left out: its own call will tell what
/// is too long.
///
/// # Errors
/// A role is away or busy: it may say later.
pub(crate) async fn measure(
    contexts: &dyn Contexts,
    task: &TaskKey,
    trajectory: &Trajectory,
    time_left: Duration,
) -> Result<Vec<PromptSize>, Failure> {
    let mut sizes = Vec::with_capacity(Role::ALL.len());
    for role in Role::ALL {
        match contexts.measure(role, task, trajectory, time_left).await {
            Ok(size) => sizes.push(size),
            Err(failure) if failure.class.passes() => return Err(failure),
            Err(_) => {}
        }
    }
    Ok(sizes)
}

/// The size whose tokens exceed its limit most.
pub(crate) fn tightest(sizes: &[PromptSize]) -> Option<PromptSize> {
    sizes.iter().copied().max_by(|a, b| (a.tokens * b.limit.max(1)).cmp(&(b.tokens * a.limit.max(1))))
}

/// More tokens than any role's prompt has, whose transcript has so many bytes: a token is at least
/// a byte.
pub(crate) fn most_tokens(trajectory: &Trajectory, transcript_bytes: usize) -> usize {
    transcript_bytes + bytes_beside(trajectory)
}

/// The most bytes of a prompt that are not of its transcript. They are the same for all prompts of
/// a task from its first plan on.
pub(crate) fn bytes_beside(trajectory: &Trajectory) -> usize {
    let tools: usize = trajectory.tools.iter().map(|tool| described(tool).len()).sum();
    tools + most_recalled_bytes(&trajectory.recalled) + TEMPLATE_BYTES
}

/// Whether what is never left out of a task's prompts leaves room for a reply: the tools, the
/// question, and the step that waits for an agent. Models that cannot be asked within `time_left`
/// are taken as large enough: the task's calls will tell.
///
/// # Errors
/// The size of the fixed parts, and what fits.
pub async fn check_fixed_parts(
    contexts: &dyn Contexts,
    task: &TaskKey,
    trajectory: &Trajectory,
    time_left: Duration,
) -> Result<(), PromptSize> {
    let longest = trajectory.tools.iter().map(|tool| tool.name.as_str()).max_by_key(|name| name.len()).unwrap_or_default();
    let step = Step { thought: "(Left out.)".to_owned(), tool: longest.to_owned(), params: Some(String::new()), ..Step::default() };
    let fixed = Trajectory { left_out: MANY_STEPS, turns: vec![Turn::Step(step)], ..trajectory.clone() };
    // an answer is judged as it is, however long
    let answer = Expect::input_tokens(&fixed.tools);
    // no reply is longer than that
    let most = most_tokens(&fixed, transcript(&fixed).len()) + answer + answer;
    if Role::ALL.into_iter().all(|role| contexts.room(role).is_some_and(|room| most <= room)) {
        return Ok(());
    }
    let Ok(sizes) = measure(contexts, task, &fixed, time_left).await else { return Ok(()) };
    let sizes: Vec<_> = sizes.into_iter().map(|size| PromptSize { tokens: size.tokens + answer, ..size }).collect();
    tightest(&sizes).filter(|size| !size.fits()).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use autoact_prompt::chat;
    use autoact_trajectory::{ParameterSchema, RecalledItem, RecalledKind, ToolSpec};

    use super::*;

    #[test]
    fn no_role_is_asked_with_more_than_the_bound() {
        let description = "what it is measured in, ".repeat(200);
        let schema = format!(r#"{{"type":"object","properties":{{"unit":{{"type":"string","description":"{description}"}}}}}}"#);
        let schema = ParameterSchema::parse(&schema).unwrap();
        let tool = ToolSpec {
            definition: "Converts.".into(),
            usage: "Convert[unit]".into(),
            timeout: Duration::from_secs(1),
            max_observation_bytes: 100,
            schema: Some(schema),
            examples: vec![r#"{"unit":"km"}"#.repeat(100)],
            ..ToolSpec::new("Convert")
        };
        let recalled = vec![RecalledItem {
            kind: RecalledKind::Turn,
            task_id: String::new(),
            question: "How long is the Loire? ".repeat(100),
            answer: "1006 km".into(),
            approved: false,
            finished_at: None,
            score: 1.0,
        }];
        let trajectory = Trajectory { question: "How far?".into(), tools: vec![tool], recalled, ..Trajectory::default() };
        let most = most_tokens(&trajectory, transcript(&trajectory).len());
        for role in Role::ALL {
            let bytes: usize = chat(role, &trajectory).iter().map(|message| message.content.len()).sum();
            assert!(bytes <= most, "{} has {bytes} bytes, the bound is {most}", role.as_str());
        }
    }
}
