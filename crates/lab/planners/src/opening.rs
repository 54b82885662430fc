//! The text before a transcript: an instruction for models with a chat template, and worked
//! examples.

use autoact_prompt::{header, transcript};
use autoact_trajectory::{Step, ToolSpec, Trajectory, Turn};

use crate::planner::PlannerOptions;
use crate::toolbox::Toolbox;

/// A worked example about invented things, so that no example contains a real answer.
pub(crate) struct Example {
    question: &'static str,
    /// Thought, tool, input and observation of each step; the last step answers.
    steps: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

const EXAMPLES: [Example; 2] = [
    Example {
        question: "What is the capital of the country where the Aldra flows?",
        steps: &[
            ("I need the country of the Aldra.", "Retrieve", "Aldra", "The Aldra is a river in Vendia. It is 310 km long."),
            ("The country is Vendia. I need its capital.", "Retrieve", "Vendia", "Vendia is a country. Its capital is Ostrel."),
            ("The capital of Vendia is Ostrel.", "Finish", "Ostrel", ""),
        ],
    },
    Example {
        question: "Is Lake Tarn deeper than Lake Brey?",
        steps: &[
            ("I need the depth of Lake Tarn.", "Search", "depth of Lake Tarn", "Lake Tarn: Lake Tarn is 80 m deep."),
            ("I need the depth of Lake Brey.", "Search", "depth of Lake Brey", "Lake Brey: Lake Brey is 35 m deep."),
            ("80 m is more than 35 m.", "Finish", "yes", ""),
        ],
    },
];

impl Example {
    /// The example as a history with these tools.
    pub(crate) fn trajectory(&self, tools: &[ToolSpec]) -> Trajectory {
        let turn = |(thought, tool, input, observation): &(&str, &str, &str, &str)| {
            Turn::Step(Step {
                thought: (*thought).to_owned(),
                tool: (*tool).to_owned(),
                params: Some((*input).to_owned()),
                observation: Some(*observation).filter(|observation| !observation.is_empty()).map(str::to_owned),
                ..Step::default()
            })
        };
        Trajectory {
            question: self.question.to_owned(),
            tools: tools.to_vec(),
            turns: self.steps.iter().map(turn).collect(),
            ..Trajectory::default()
        }
    }

    /// Purpose, tool and input of the steps before the answer.
    pub(crate) fn working(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let working = self.steps.len().saturating_sub(1);
        self.steps.iter().take(working).map(|(thought, tool, input, _)| (*thought, *tool, *input))
    }

    /// All its thoughts, joined.
    pub(crate) fn reasoning(&self) -> String {
        self.steps.iter().map(|(thought, ..)| *thought).collect::<Vec<_>>().join(" ")
    }

    /// Its answer.
    pub(crate) fn answer(&self) -> &'static str {
        self.steps.last().map_or("", |(_, _, answer, _)| answer)
    }

    pub(crate) fn question(&self) -> &'static str {
        self.question
    }
}

/// The text before a prompted planner's transcript. `show` formats an example for the planner.
pub(crate) fn opening(duty: &str, tools: &Toolbox, options: &PlannerOptions, show: impl Fn(&Example) -> String) -> String {
    let mut text = String::new();
    if options.instructions {
        text.push_str(duty);
        text.push_str("\nThe tools are:\n");
        for tool in tools.specs() {
            text.push_str(&format!("- {}: {}\n", tool.usage, tool.definition));
        }
        text.push('\n');
    }
    let known = |example: &&Example| example.steps.iter().all(|(_, tool, ..)| tools.specs().iter().any(|spec| spec.name == *tool));
    for example in EXAMPLES.iter().filter(known).take(options.shots) {
        text.push_str(&show(example));
        text.push('\n');
    }
    text
}

/// An example in the agents' transcript format.
pub(crate) fn shown(example: &Example, tools: &[ToolSpec]) -> String {
    transcript(&example.trajectory(tools))
}

/// The first lines of a transcript: the tools and the question.
pub(crate) fn task(question: &str, tools: &[ToolSpec]) -> String {
    debug_assert!(header(tools).ends_with('\n'));
    transcript(&Trajectory { question: question.to_owned(), tools: tools.to_vec(), ..Trajectory::default() })
}
