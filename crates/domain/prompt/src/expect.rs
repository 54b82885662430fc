//! What an agent's reply must look like: the grammar that decoding is constrained to, and the
//! parser of the finished reply.

use autoact_trajectory::{ParameterSchema, Role, ToolSpec, Trajectory, Verdict};

/// The longest thought, in characters: a thought is a sentence or two, and a model that rambles
/// must not eat the task's budget.
const MAX_THOUGHT: usize = 600;
/// The longest parameters on a plain line, in characters.
const MAX_INPUT: usize = 1000;
/// Tokens for a reply of plain lines.
const LINE_TOKENS: usize = 256;
/// Tokens for a JSON object: several arguments, one of which may be a paragraph.
const OBJECT_TOKENS: usize = 512;

/// The form of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// A regular expression that the whole reply matches, its final line break included.
    Regex(String),
    /// One line of JSON that satisfies this schema.
    Arguments(ParameterSchema),
}

/// What a reply has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    /// Its form.
    pub form: Form,
    /// An upper bound on its tokens.
    pub max_tokens: usize,
    /// The least and the most characters that a tool takes of a line, however many tokens there are.
    length: Option<(usize, usize)>,
}

impl Expect {
    /// A reply that matches a regular expression.
    pub fn regex(regex: String, max_tokens: usize) -> Expect {
        Expect { form: Form::Regex(regex), max_tokens, length: None }
    }

    /// The same form with up to `max_tokens` tokens, and texts that are as much longer; never
    /// shorter.
    #[must_use]
    pub fn with_tokens(self, max_tokens: usize) -> Expect {
        if max_tokens <= self.max_tokens {
            return self;
        }
        let longer = |bound: usize| bound * max_tokens / self.max_tokens;
        let form = match (self.form, self.length) {
            (Form::Regex(_), Some(length)) => Form::Regex(line(length, longer(MAX_INPUT))),
            (Form::Regex(regex), None) => {
                let written = |bound: usize| format!("{{1,{bound}}}");
                let bound = [MAX_THOUGHT, MAX_INPUT].into_iter().find(|bound| regex.contains(&written(*bound)));
                Form::Regex(bound.map_or(regex.clone(), |bound| regex.replace(&written(bound), &written(longer(bound)))))
            }
            (form @ Form::Arguments(_), _) => form,
        };
        Expect { form, max_tokens, length: self.length }
    }

    /// How `role` may go on with a trajectory. The input of a tool with several or typed arguments
    /// is a JSON object.
    pub fn next(role: Role, trajectory: &Trajectory) -> Expect {
        let chosen = trajectory.open_step().and_then(|step| trajectory.tool(&step.tool));
        let Some(tool) = chosen.filter(|_| role == Role::Tool) else { return Expect::new(role, &trajectory.tools) };
        if let Some(schema) = tool.object_schema() {
            return Expect { form: Form::Arguments(schema.clone()), max_tokens: OBJECT_TOKENS, length: None };
        }
        match tool.schema.as_ref().and_then(ParameterSchema::line_length) {
            Some(length) => Expect { length: Some(length), ..Expect::regex(line(length, MAX_INPUT), LINE_TOKENS) },
            None => Expect::new(role, &trajectory.tools),
        }
    }

    /// The most tokens that Tool-Agent may write for any of `tools`.
    pub fn input_tokens(tools: &[ToolSpec]) -> usize {
        if tools.iter().any(|tool| tool.object_schema().is_some()) { OBJECT_TOKENS } else { LINE_TOKENS }
    }

    /// What `role` may write when it has `tools` to choose from. Plan-Agent can only name one of
    /// them, and an input is a plain line.
    pub fn new(role: Role, tools: &[ToolSpec]) -> Expect {
        match role {
            Role::Plan => {
                let names: Vec<String> = tools.iter().map(|tool| escape(&tool.name)).collect();
                Expect::regex(format!(r" [^\n]{{1,{MAX_THOUGHT}}}\nAction: ({})\n", names.join("|")), LINE_TOKENS)
            }
            Role::Tool => Expect::regex(line((0, usize::MAX), MAX_INPUT), LINE_TOKENS),
            Role::Reflect => Expect::regex(format!(r" [^\n]{{1,{MAX_THOUGHT}}}\nVerdict: (right|wrong)\n"), LINE_TOKENS),
        }
    }
}

/// An input on a plain line, of as many characters as its tool takes and not more than `longest`.
/// Blanks around it are not part of it.
fn line((least, most): (usize, usize), longest: usize) -> String {
    let most = most.clamp(1, longest);
    match least.min(most) {
        0 | 1 => format!(r" [^\n]{{1,{most}}}\n"),
        least => format!(r" \S[^\n]{{{},{}}}\S\n", least - 2, most - 2),
    }
}

/// A reply that does not have its role's form. Constrained decoding makes this impossible unless
/// the reply was cut short.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {role} agent's reply has no `{missing}`: `{reply}`")]
pub struct ParseError {
    role: &'static str,
    missing: &'static str,
    reply: String,
}

/// (thought, tool name) of a Plan-Agent's reply.
pub fn parse_plan(reply: &str) -> Result<(String, String), ParseError> {
    let (thought, tool) = split(reply, "\nAction:", Role::Plan)?;
    Ok((thought.to_owned(), tool.to_owned()))
}

/// The parameters of a Tool-Agent's reply.
pub fn parse_input(reply: &str) -> Result<String, ParseError> {
    let line = reply.trim();
    if line.is_empty() {
        return Err(ParseError { role: Role::Tool.as_str(), missing: "Input", reply: reply.to_owned() });
    }
    Ok(line.to_owned())
}

/// (thought, verdict) of a Reflect-Agent's reply.
pub fn parse_reflection(reply: &str) -> Result<(String, Verdict), ParseError> {
    let (thought, verdict) = split(reply, "\nVerdict:", Role::Reflect)?;
    let verdict = match verdict {
        "right" => Verdict::Right,
        "wrong" => Verdict::Wrong,
        _ => return Err(ParseError { role: Role::Reflect.as_str(), missing: "Verdict", reply: reply.to_owned() }),
    };
    Ok((thought.to_owned(), verdict))
}

fn split<'a>(reply: &'a str, label: &'static str, role: Role) -> Result<(&'a str, &'a str), ParseError> {
    let (before, after) = reply.split_once(label).ok_or_else(|| ParseError {
        role: role.as_str(),
        missing: label.trim().trim_end_matches(':'),
        reply: reply.to_owned(),
    })?;
    Ok((before.trim(), after.trim()))
}

fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if !c.is_alphanumeric() && c != '_' && c != ' ' {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use autoact_trajectory::{Step, Turn};

    use super::*;

    #[test]
    fn replies_parse() {
        assert_eq!(parse_plan(" I need it.\nAction: Retrieve\n").unwrap(), ("I need it.".into(), "Retrieve".into()));
        assert_eq!(parse_input(" New York City\n").unwrap(), "New York City");
        assert_eq!(parse_reflection(" Yes.\nVerdict: wrong\n").unwrap().1, Verdict::Wrong);
    }

    #[test]
    fn replies_may_be_longer_and_never_shorter() {
        let plan = Expect::new(Role::Plan, &[]);
        assert_eq!(plan.clone().with_tokens(0), plan);
        assert_eq!(plan.clone().with_tokens(LINE_TOKENS), plan);
        let longer = plan.with_tokens(4 * LINE_TOKENS);
        assert_eq!((longer.max_tokens, longer.form), (1024, Form::Regex(r" [^\n]{1,2400}\nAction: ()\n".into())));
        assert_eq!(Expect::new(Role::Tool, &[]).with_tokens(512).form, Form::Regex(r" [^\n]{1,2000}\n".into()));
    }

    #[test]
    fn an_input_is_no_longer_than_its_tool_takes() {
        let schema = |bounds: &str| format!(r#"{{"type":"object","properties":{{"q":{{"type":"string",{bounds}}}}},"required":["q"]}}"#);
        for (bounds, usual, longer) in [
            (r#""maxLength":12"#, r"[^\n]{1,12}", r"[^\n]{1,12}"),
            (r#""maxLength":1500"#, r"[^\n]{1,1000}", r"[^\n]{1,1500}"),
            (r#""maxLength":9000"#, r"[^\n]{1,1000}", r"[^\n]{1,4000}"),
            (r#""minLength":3"#, r"\S[^\n]{1,998}\S", r"\S[^\n]{1,3998}\S"),
            (r#""minLength":2,"maxLength":2"#, r"\S[^\n]{0,0}\S", r"\S[^\n]{0,0}\S"),
        ] {
            let tool = ToolSpec { schema: Some(ParameterSchema::parse(&schema(bounds)).unwrap()), ..ToolSpec::new("Find") };
            let step = Step { tool: "Find".into(), ..Step::default() };
            let trajectory = Trajectory { tools: vec![tool], turns: vec![Turn::Step(step)], ..Trajectory::default() };
            let expect = Expect::next(Role::Tool, &trajectory);
            assert_eq!(expect.form, Form::Regex(format!(r" {usual}\n")));
            assert_eq!(expect.with_tokens(4 * LINE_TOKENS).form, Form::Regex(format!(r" {longer}\n")));
        }
    }

    #[test]
    fn cut_replies_are_errors() {
        assert!(parse_plan(" I need").is_err());
        assert!(parse_input("\n").is_err());
        assert!(parse_reflection(" Yes.\nVerdict: ri").is_err());
    }
}
