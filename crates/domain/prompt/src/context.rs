//! What the client said beside the question, as labelled lines.

use autoact_base::lines::one_line;
use autoact_trajectory::{Profile, TaskContext, TaskInfo, rfc3339};

/// A line for each field that is set, in a fixed order: what changes least from task to task comes
/// first, so that tasks share the beginning of their prompts. Knowledge bases are no part of a
/// prompt.
pub(crate) fn context_lines(context: &TaskContext) -> String {
    let TaskContext { task, profile, instructions, knowledge: _, now, time_zone } = context;
    let TaskInfo { name, description, answer_format } = task;
    let Profile { name: speaker, bio, audience } = profile;
    let mut lines = String::new();
    let mut line = |label: &str, text: &str| {
        let text = one_line(text);
        if !text.is_empty() {
            lines.extend([label, ": ", &text, "\n"]);
        }
    };
    line("Task", name);
    line("Description", description);
    line("Answer format", answer_format);
    line("Profile", speaker);
    line("Bio", bio);
    line("Audience", audience);
    instructions.iter().for_each(|instruction| line("Instruction", instruction));
    if let Some(time_zone) = time_zone {
        line("Time zone", time_zone.as_str());
    }
    if let Some(now) = now {
        line("Time", &rfc3339(*now));
    }
    lines
}
