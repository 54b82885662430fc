//! Chat templates: Jinja in Hugging Face's dialect.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, Value, context};
use serde::{Deserialize, Serialize};

use crate::Prompt;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, …
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// A message of `role`.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }
}

/// A model's chat template, parsed.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos_token: String,
    eos_token: String,
}

const NAME: &str = "chat";

/// Maximum number of steps of a template; published templates need some thousands.
const FUEL: u64 = 1_000_000;

impl ChatTemplate {
    /// Parses `source`. The tokens are the values of `bos_token` and `eos_token` in the template.
    pub fn new(source: String, bos_token: String, eos_token: String) -> Result<Self, Error> {
        let mut environment = Environment::new();
        // Same settings as in transformers.
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(python_method);
        environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", |format: String| {
            let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
            strftime(&format, seconds)
        });
        environment.add_template_owned(NAME, source)?;
        Ok(Self { environment, bos_token, eos_token })
    }

    /// Renders the prompt for `messages`; with `add_generation_prompt`, up to the assistant's next
    /// message. Message contents become text parts, everything else template parts.
    ///
    /// The template sees a message's role, but of its content only the length and the white space.
    /// So stripping and splitting at white space work. A template that searches contents for words
    /// (Qwen 3's, for thoughts in earlier messages of the assistant) does not find them.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<Prompt, Error> {
        let fields = |m: &Message| Value::from_pairs([("role", m.role.clone()), ("content", disguise(&m.content))]);
        let rendered = self.environment.get_template(NAME)?.render(context! {
            messages => messages.iter().map(fields).collect::<Value>(),
            add_generation_prompt,
            bos_token => self.bos_token.as_str(),
            eos_token => self.eos_token.as_str(),
        })?;
        Ok(reveal(&rendered))
    }
}

/// First of the characters that replace those of messages: the private-use plane 15, which
/// templates do not contain. There is one for each UTF-16 unit, so that every character can be
/// restored, including those of this plane.
const STAND_IN: u32 = 0xF_0000;

fn is_stand_in(c: char) -> bool {
    u32::from(c) >> 16 == STAND_IN >> 16
}

/// `content` with all characters except white space replaced.
fn disguise(content: &str) -> String {
    let mut disguised = String::with_capacity(4 * content.len());
    let mut units = [0; 2];
    for c in content.chars() {
        if c.is_whitespace() {
            disguised.push(c);
        } else {
            let units = c.encode_utf16(&mut units).iter();
            disguised.extend(units.filter_map(|unit| char::from_u32(STAND_IN + u32::from(*unit))));
        }
    }
    disguised
}

/// Converts rendered text to a prompt with the original contents as text parts.
fn reveal(rendered: &str) -> Prompt {
    let mut prompt = Prompt::default();
    let mut rest = rendered;
    while let Some(at) = rest.find(is_stand_in) {
        let (before, from) = rest.split_at(at);
        // white space cannot spell a control token; as text it keeps a message's words in one part
        if before.trim().is_empty() {
            prompt.push_text(before);
        } else {
            prompt.push_template(before);
        }
        let (disguised, after) = from.split_at(from.find(|c| !is_stand_in(c)).unwrap_or(from.len()));
        let units = disguised.chars().map(|c| (u32::from(c) & 0xffff) as u16);
        prompt.extend_text(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        rest = after;
    }
    prompt.push_template(rest);
    prompt
}

/// The Python string and mapping methods that published templates call.
fn python_method(_: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let unknown = || Error::new(ErrorKind::UnknownMethod, format!("`{method}` is not supported in chat templates"));
    if let Some(text) = value.as_str() {
        let arg = args.first().and_then(|a| a.as_str());
        return match (method, arg) {
            ("strip", None) => Ok(Value::from(text.trim())),
            ("lstrip", None) => Ok(Value::from(text.trim_start())),
            ("rstrip", None) => Ok(Value::from(text.trim_end())),
            ("strip", Some(set)) => Ok(Value::from(text.trim_matches(|c| set.contains(c)))),
            ("lstrip", Some(set)) => Ok(Value::from(text.trim_start_matches(|c| set.contains(c)))),
            ("rstrip", Some(set)) => Ok(Value::from(text.trim_end_matches(|c| set.contains(c)))),
            ("upper", _) => Ok(Value::from(text.to_uppercase())),
            ("lower", _) => Ok(Value::from(text.to_lowercase())),
            ("title", _) => Ok(Value::from(title(text))),
            ("startswith", Some(head)) => Ok(Value::from(text.starts_with(head))),
            ("endswith", Some(tail)) => Ok(Value::from(text.ends_with(tail))),
            ("split", Some(by)) if !by.is_empty() => Ok(text.split(by).map(Value::from).collect()),
            ("split", None) => Ok(text.split_whitespace().map(Value::from).collect()),
            ("replace", Some(from)) => match args.get(1).and_then(|a| a.as_str()) {
                Some(to) => Ok(Value::from(text.replace(from, to))),
                None => Err(unknown()),
            },
            _ => Err(unknown()),
        };
    }
    let Some(key) = args.first() else {
        return match method {
            "keys" => Ok(value.try_iter()?.collect()),
            "items" => {
                let pairs: Result<Vec<Value>, Error> =
                    value.try_iter()?.map(|k| Ok(Value::from(vec![k.clone(), value.get_item(&k)?]))).collect();
                Ok(Value::from(pairs?))
            }
            _ => Err(unknown()),
        };
    };
    match method {
        "get" => {
            let found = value.get_item(key)?;
            Ok(if found.is_undefined() { args.get(1).cloned().unwrap_or_else(|| Value::from(())) } else { found })
        }
        _ => Err(unknown()),
    }
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut start = true;
    for c in text.chars() {
        if start {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        start = !c.is_alphabetic();
    }
    out
}

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// The formats that templates use, in UTC. Unknown ones are left unchanged.
fn strftime(format: &str, seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (month_name, day_name) = (MONTHS[month - 1], DAYS[(days % 7) as usize]);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('Y') => out.push_str(&year.to_string()),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('B') => out.push_str(month_name),
            Some('b') => out.push_str(&month_name[..3]),
            Some('A') => out.push_str(day_name),
            Some('a') => out.push_str(&day_name[..3]),
            Some('H') => out.push_str(&format!("{:02}", rest / 3600)),
            Some('M') => out.push_str(&format!("{:02}", rest / 60 % 60)),
            Some('S') => out.push_str(&format!("{:02}", rest % 60)),
            Some('%') => out.push('%'),
            Some(other) => out.extend(['%', other]),
            None => out.push('%'),
        }
    }
    out
}

/// Days since 1970-01-01 -> (year, month 1-12, day 1-31):
/// <https://howardhinnant.github.io/date_algorithms.html>, `civil_from_days`, for days after the
/// epoch.
fn civil(days: u64) -> (u64, usize, u64) {
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + u64::from(month <= 2), month as usize, doy - (153 * mp + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(source: &str) -> ChatTemplate {
        ChatTemplate::new(source.to_owned(), "<s>".to_owned(), "</s>".to_owned()).unwrap()
    }

    const LLAMA2: &str = "{% if messages[0]['role'] == 'system' %}{% set system = '<<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' %}\
{% set turns = messages[1:] %}{% else %}{% set system = '' %}{% set turns = messages %}{% endif %}\
{% for m in turns %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}\
{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + (system if loop.first else '') + m['content'].strip() + ' [/INST]' }}\
{% else %}{{ ' ' + m['content'].strip() + ' ' + eos_token }}{% endif %}{% endfor %}";

    const QWEN2: &str = "{%- if messages[0]['role'] != 'system' %}{{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}";

    #[test]
    fn llama2_style() {
        let chat = [Message::new("system", "Be brief."), Message::new("user", " Hi "), Message::new("assistant", "Hello.")];
        let text = template(LLAMA2).render(&chat, true).unwrap();
        assert_eq!(text, "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello. </s>");
    }

    #[test]
    fn a_template_may_refuse_the_conversation() {
        let chat = [Message::new("user", "a"), Message::new("user", "b")];
        let error = template(LLAMA2).render(&chat, true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOperation);
        assert!(error.to_string().contains("roles must alternate"));
    }

    #[test]
    fn mistral_style() {
        let source = "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]{% else %} {{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}";
        let chat = [Message::new("user", "Hi"), Message::new("assistant", "Hello"), Message::new("user", "Bye")];
        assert_eq!(template(source).render(&chat, false).unwrap(), "<s>[INST] Hi [/INST] Hello</s>[INST] Bye [/INST]");
    }

    #[test]
    fn qwen2_style() {
        let text = template(QWEN2).render(&[Message::new("user", "Hi")], true).unwrap();
        assert_eq!(text, "<|im_start|>system\nYou are helpful.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    }

    /// The text parts of a prompt.
    fn texts(prompt: &Prompt) -> Vec<&str> {
        let mut from = 0;
        let mut texts = Vec::new();
        for part in prompt.template_ranges() {
            texts.extend(prompt.get(from..part.start).filter(|text| !text.is_empty()));
            from = part.end;
        }
        texts.extend(prompt.get(from..).filter(|text| !text.is_empty()));
        texts
    }

    #[test]
    fn contents_are_text_and_the_rest_is_the_templates() {
        let said = "  What does <|im_end|>\n</s> mean \u{1f642} \u{f0041}\u{10fffd}? ";
        let chat = [Message::new("system", "Be <|im_start|> brief."), Message::new("user", said), Message::new("assistant", "")];
        let prompt = template(QWEN2).render(&chat, true).unwrap();
        let whole = format!(
            "<|im_start|>system\nBe <|im_start|> brief.<|im_end|>\n<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n<|im_start|>assistant\n"
        );
        assert_eq!(prompt, whole.as_str());
        assert_eq!(texts(&prompt), ["Be <|im_start|> brief.", said.trim()]);
        let prompt = template(LLAMA2).render(&chat, true).unwrap();
        assert_eq!(prompt, format!("<s>[INST] <<SYS>>\nBe <|im_start|> brief.\n<</SYS>>\n\n{} [/INST]  </s>", said.trim()).as_str());
        assert_eq!(texts(&prompt), ["Be <|im_start|> brief.", said.trim()]);
    }

    #[test]
    fn any_content_is_restored() {
        let every: String = ('\0'..=char::MAX).collect();
        assert_eq!(reveal(&disguise(&every)), every.as_str());
    }

    #[test]
    fn python_methods_that_templates_call() {
        let source = "{{ 'a-b'.split('-')[1] }}{{ messages[0].get('role') }}{{ messages[0].get('name', 'x') }}{{ 'ab'.startswith('a') }}";
        assert_eq!(template(source).render(&[Message::new("user", "")], false).unwrap(), "buserxTrue");
    }

    #[test]
    fn dates() {
        let leap_day = 1_709_164_800 + 3_723; // 2024-02-29 01:02:03 UTC
        assert_eq!(strftime("%d %b %Y, %A %H:%M:%S %%", leap_day), "29 Feb 2024, Thursday 01:02:03 %");
        assert_eq!(strftime("%Y-%m-%d", 0), "1970-01-01");
        assert!(template("{{ strftime_now('%Y') }}").render(&[], false).unwrap().starts_with("20"));
    }
}
