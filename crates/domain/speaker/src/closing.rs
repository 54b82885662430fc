//! Replies that end too early: a thought that used up its tokens is closed, an input that the
//! context cut is refused. What repeats itself is marked so. It stays as it is: a value that ends
//! within its first copy would look whole (`J. R`), and be approved.

use autoact_model::{FinishReason, GenerateError, GenerateRequest, Generated, Grammar, Scored, TokenScore};
use autoact_trajectory::Role;

use crate::repetition::repeats_itself;

/// Tokens to finish a reply whose thought used up its own: a line break, a label and a name.
pub(crate) const CLOSING_TOKENS: usize = 64;

/// What becomes of a reply that ended for its length.
pub(crate) enum Cut {
    /// It is whole as it is, or nothing can be done for it.
    Whole(Generated),
    /// Its thought stays, and the model is asked for the rest.
    Close {
        /// The reply so far, cut back to its thought.
        thought: Generated,
        /// What the model is asked. Prompt and thought are in its cache, so this costs a few
        /// tokens.
        request: Box<GenerateRequest>,
    },
}

/// Looks at the reply of `role` to `request`, which ended for its length, in a context of so many
/// tokens.
pub(crate) fn look(role: Role, request: &GenerateRequest, context: usize, mut reply: Generated) -> Result<Cut, GenerateError> {
    if repeats_itself(&reply.text) {
        reply.finish = FinishReason::Repetition;
    }
    if let Some(rest) = rest(role, request, &reply.text) {
        return close(request, context, reply, rest);
    }
    if role == Role::Tool && reply.prompt_tokens + reply.completion_tokens >= context {
        // half an input is not what the model meant, and what cut it was the prompt
        let limit = context.saturating_sub(request.max_tokens);
        return Err(GenerateError::PromptTooLong { tokens: reply.prompt_tokens, limit });
    }
    Ok(Cut::Whole(reply))
}

/// The rest of the grammar after the thought, for a reply that was cut within its thought or before
/// it was complete.
fn rest(role: Role, request: &GenerateRequest, text: &str) -> Option<String> {
    let label = match role {
        Role::Plan => "\nAction: ",
        Role::Reflect => "\nVerdict: ",
        Role::Tool => return None,
    };
    if text.contains(label) && text.ends_with('\n') {
        return None;
    }
    let Some(Grammar::Regex(regex)) = &request.grammar else { return None };
    let at = regex.find(&label.replace('\n', "\\n"))?;
    Some(regex[at..].to_owned())
}

fn close(request: &GenerateRequest, context: usize, mut cut: Generated, rest: String) -> Result<Cut, GenerateError> {
    // the thought is one line: what comes after it is begun anew
    let mut end = cut.text.find('\n').unwrap_or(cut.text.len());
    let over = (cut.prompt_tokens + cut.completion_tokens + CLOSING_TOKENS).saturating_sub(context);
    if over >= cut.completion_tokens {
        let limit = context.saturating_sub(CLOSING_TOKENS + 1);
        return Err(GenerateError::PromptTooLong { tokens: cut.prompt_tokens, limit });
    }
    // where the context is full, the end of the thought makes room for the closing
    end = end.min(cut.text.len() * (cut.completion_tokens - over) / cut.completion_tokens);
    while !cut.text.is_char_boundary(end) {
        end -= 1;
    }
    cut.text.truncate(end);
    if let Some(scores) = &mut cut.scores {
        scores.truncate(end);
    }
    let mut prompt = request.prompt.clone();
    prompt.push_text(&cut.text);
    let request = GenerateRequest { prompt, max_tokens: CLOSING_TOKENS, grammar: Some(Grammar::Regex(rest)), ..request.clone() };
    Ok(Cut::Close { thought: cut, request: Box::new(request) })
}

/// Two completions as one: the second went on where the first was cut.
pub(crate) fn joined(before: Generated, after: Generated) -> Generated {
    let scores = joined_scores(before.scores, before.text.len(), after.scores.as_deref());
    Generated {
        text: before.text + &after.text,
        finish: if before.finish == FinishReason::Repetition { before.finish } else { after.finish },
        prompt_tokens: before.prompt_tokens,
        cached_prompt_tokens: before.cached_prompt_tokens,
        completion_tokens: before.completion_tokens + after.completion_tokens,
        drafted_tokens: before.drafted_tokens + after.drafted_tokens,
        accepted_tokens: before.accepted_tokens + after.accepted_tokens,
        queue: before.queue + after.queue,
        prefill: before.prefill,
        decode: before.decode + after.prefill + after.decode,
        scores,
        ..after
    }
}

/// The scores of both parts; `None` if those of one are unknown. The second part begins at byte
/// `from` of the text.
fn joined_scores(before: Option<Box<Scored>>, from: usize, after: Option<&Scored>) -> Option<Box<Scored>> {
    let (mut scores, after) = (before?, after?);
    scores.tokens.extend(after.tokens.iter().map(|token| TokenScore { at: from + token.at, ..*token }));
    scores.log_odds = after.log_odds;
    Some(scores)
}
