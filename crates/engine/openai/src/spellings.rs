//! Breaks up spellings of control tokens in text. A server gets the prompt as one string and would
//! recognise them like the template's.

use std::borrow::Cow;

use autoact_model::Prompt;
use regex::Regex;

/// Control tokens of known model families. `<|…|>` covers Llama 3 and Qwen, `<｜…｜>` DeepSeek. The
/// others are Llama 2's and Mistral's, and the delimiters of thoughts and tool calls.
const FAMILIES: &str = concat!(
    r"<\|[^\s<>|]+\|>|<｜[^\s<>｜]+｜>|</?s>|<unk>|<pad>|<<SYS>>|<</SYS>>|</?(?:think|tool_call|tool_response)>",
    r"|\[/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|SYSTEM_PROMPT|THINK|ARGS|CALL_ID)\]",
    r"|\[(?:IMG|IMG_BREAK|IMG_END|PREFIX|MIDDLE|SUFFIX|REFERENCE_DOC_[0-9]+|/REFERENCE_DOC_[0-9]+)\]",
);

/// The spellings that a server recognises as control tokens.
#[derive(Debug)]
pub(crate) struct Spellings(Regex);

impl Spellings {
    /// The spellings in `known`; if that is empty, those of the known model families.
    pub(crate) fn new(known: &[String]) -> Result<Spellings, regex::Error> {
        let mut known: Vec<&str> = known.iter().map(String::as_str).filter(|spelling| !spelling.is_empty()).collect();
        if known.is_empty() {
            return Regex::new(FAMILIES).map(Spellings);
        }
        // the first matching alternative wins, so the longest comes first
        known.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        let known: Vec<String> = known.into_iter().map(regex::escape).collect();
        Regex::new(&known.join("|")).map(Spellings)
    }

    /// The prompt with a space after the first character of every spelling in a text part: `<
    /// |eot_id|>`.
    ///
    /// It is a space and not an invisible character, because models read it easily, copies of the
    /// text contain nothing hidden, and no tokenizer's normaliser removes it.
    pub(crate) fn broken_up<'a>(&self, prompt: &'a Prompt) -> Cow<'a, str> {
        let text = prompt.as_str();
        let (mut breaks, mut from) = (Vec::new(), 0);
        while let Some(found) = self.0.find_at(text, from) {
            // continue at the next character, because spellings may overlap
            from = found.start() + text[found.start()..].chars().next().map_or(1, char::len_utf8);
            match prompt.template_at(found.start()) {
                Some(template) if found.end() <= template.end => {}
                // begins in a template part: the template's own token must stay whole
                Some(template) => breaks.push(template.end),
                None => breaks.push(from),
            }
        }
        if breaks.is_empty() {
            return Cow::Borrowed(text);
        }
        breaks.sort_unstable();
        breaks.dedup();
        let mut broken = String::with_capacity(text.len() + breaks.len());
        let mut copied = 0;
        for at in breaks {
            broken.push_str(&text[copied..at]);
            broken.push(' ');
            copied = at;
        }
        broken.push_str(&text[copied..]);
        Cow::Owned(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families() -> Spellings {
        Spellings::new(&[]).unwrap()
    }

    #[test]
    fn text_is_broken_up_and_a_template_is_not() {
        let mut prompt = Prompt::template("<|im_start|>user\n");
        prompt.push_text("What do <|im_end|>, </s> and [/INST] mean in <b>a < b</b>?");
        prompt.push_template("<|im_end|>\n");
        let sent = "<|im_start|>user\nWhat do < |im_end|>, < /s> and [ /INST] mean in <b>a < b</b>?<|im_end|>\n";
        assert_eq!(families().broken_up(&prompt), sent);
        assert!(matches!(families().broken_up(&Prompt::text("a < b, [1] and |c|")), Cow::Borrowed(_)));
    }

    #[test]
    fn nested_and_straddling_spellings_are_broken_up() {
        for (text, sent) in
            [("<|a[INST]b|>", "< |a[ INST]b|>"), ("<<s>s>", "<< s>s>"), ("<</s>", "<< /s>"), ("[INST][INST]", "[ INST][ INST]")]
        {
            assert_eq!(families().broken_up(&text.into()), sent);
        }
        let mut straddling = Prompt::template("<|im_start|>");
        straddling.push_text("<|im_end");
        straddling.push_template("|>");
        assert_eq!(families().broken_up(&straddling), "<|im_start|>< |im_end|>");
        let mut longer = Prompt::template("<|e|>");
        longer.push_text("x");
        let spellings = Spellings::new(&["<|e|>".into(), "<|e|>x".into()]).unwrap();
        assert_eq!(spellings.broken_up(&longer), "<|e|> x");
    }

    #[test]
    fn nothing_of_a_known_model_is_left() {
        let known: Vec<String> = ["<|e|>", "<|e|>x", "[C]", ""].map(str::to_owned).into();
        let spellings = Spellings::new(&known).unwrap();
        assert_eq!(spellings.broken_up(&"<|e|>x [C] [INST] <|f|>".into()), "< |e|>x [ C] [INST] <|f|>");
        for text in ["<|e|><|e|>x[C]", "<|<|e|>e|>", "[[C]C]"] {
            let sent = spellings.broken_up(&text.into()).into_owned();
            assert!(known.iter().filter(|spelling| !spelling.is_empty()).all(|spelling| !sent.contains(spelling.as_str())), "{sent}");
        }
    }

    #[test]
    fn the_families_tokens_are_known() {
        let tokens = "<|begin_of_text|> <|end_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> <|eom_id|> <|python_tag|> \
                      <|reserved_special_token_0|> <|endoftext|> <|im_start|> <|im_end|> <|fim_prefix|> <|repo_name|> <s> </s> <unk> [INST] \
                      [/INST] [TOOL_CALLS] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [IMG] [PREFIX] [MIDDLE] [SUFFIX] \
                      <<SYS>> <</SYS>> <think> </think> <tool_call> </tool_call> <tool_response> </tool_response> <｜User｜>";
        for token in tokens.split_whitespace() {
            assert_ne!(families().broken_up(&token.into()), token);
            assert_eq!(families().broken_up(&Prompt::template(token)), token);
        }
    }
}
