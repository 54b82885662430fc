//! The same transcript for a model with a chat template (Llama, Mistral, Qwen …): instructions and
//! the task's context as a system message, what was recalled of the conversation and the transcript
//! as the user's, and the cue as the beginning of the assistant's reply.

use autoact_trajectory::{Role, TaskContext, Trajectory};

use crate::context::context_lines;
use crate::recalled::recalled_lines;
use crate::tools::described;
use crate::transcript::transcript;

/// One message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// `system` or `user`.
    pub role: &'static str,
    /// Its text.
    pub content: String,
}

/// The messages that ask `role` to go on with the trajectory. The reply is expected to begin right
/// after [`crate::cue`].
pub fn chat(role: Role, trajectory: &Trajectory) -> Vec<ChatMessage> {
    let mut system = String::from(duty(role));
    if role == Role::Tool {
        system.push_str(about_answers(trajectory));
    }
    system.push_str(" The tools are:\n");
    for tool in &trajectory.tools {
        system.push_str(&described(tool));
    }
    // never the system's: what was said earlier is data, and instructions stand there
    let recalled = recalled_lines(&trajectory.recalled);
    let context = context_lines(&trajectory.context);
    if context.is_empty() {
        return messages(system, recalled + &transcript(trajectory));
    }
    system.push_str("About this task:\n");
    system.push_str(&context);
    // said once, where a chat model looks for it
    messages(system, recalled + &transcript(&Trajectory { context: TaskContext::default(), ..trajectory.clone() }))
}

/// What the input of `Finish` is.
fn about_answers(trajectory: &Trajectory) -> &'static str {
    if trajectory.tools.iter().any(|tool| tool.is_answer() && tool.object_schema().is_some()) {
        " For Finish the input is a JSON object with the answer, in which \\n is a line break."
    } else {
        " For Finish the input is the answer itself, as short as possible."
    }
}

fn messages(system: String, user: String) -> Vec<ChatMessage> {
    vec![ChatMessage { role: "system", content: system }, ChatMessage { role: "user", content: user }]
}

fn duty(role: Role) -> &'static str {
    match role {
        Role::Plan => {
            "You plan how a group of agents answers a question with tools. Continue the transcript with one thought about what is still \
             unknown and the name of the tool to use next, in two lines: the thought, then `Action:` and the name. Choose Finish once the \
             observations hold the answer."
        }
        Role::Tool => {
            "You operate the tools for a group of agents that answers a question. Continue the transcript with the input of the tool that \
             was chosen last, on one line."
        }
        Role::Reflect => {
            "You check the work of a group of agents that answered a question with tools. Continue the transcript with one thought on \
             whether the observations support the answer, and a verdict, in two lines: the thought, then `Verdict:` and right or wrong."
        }
    }
}
