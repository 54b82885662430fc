//! `autoact tasks`: its words.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::values::time;

/// `autoact tasks`
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// The latest tasks, newest first.
    List {
        /// The earliest tasks that are still there, oldest first.
        #[arg(long)]
        oldest_first: bool,
        /// Only tasks in this state.
        #[arg(long, value_enum)]
        state: Option<ListedState>,
        /// How many.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
    /// One task with its whole trajectory.
    Show {
        /// The task's id.
        id: String,
        /// A JSON object for programs.
        #[arg(long)]
        json: bool,
    },
    /// What a task's tools returned for people: tables, images, files.
    Artifacts {
        /// The task's id.
        id: String,
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
    /// The bytes of one artifact.
    Artifact {
        /// The task's id.
        id: String,
        /// The artifact's name.
        name: String,
        /// The step it belongs to, where several have one of this name; the last one otherwise.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        step: Option<u32>,
        /// Where to; `-` for standard output. Without it, a file of the artifact's name here.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// End tasks; their best answers so far stay, unapproved.
    Cancel {
        /// The tasks' ids.
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
    /// Stop tasks for a while: nothing is begun until they are resumed, and the time does not count.
    Pause {
        /// The tasks' ids.
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Why, for those who look at it.
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Let paused tasks go on.
    Resume {
        /// The tasks' ids.
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
    /// Answer the question of a task that waits for you.
    Answer {
        /// The task's id.
        id: String,
        /// The answer.
        text: String,
        /// The step that asks; without it, the one that asks now.
        #[arg(long)]
        step: Option<u32>,
    },
    /// Let a task run the action that waits for approval. Needs the role `operate`.
    Approve {
        /// The task's id.
        id: String,
        /// The step that asks; without it, the one that asks now.
        #[arg(long)]
        step: Option<u32>,
        /// Approve all later calls of the tool in this task too.
        #[arg(long)]
        for_task: bool,
    },
    /// Do not let a task run the action that waits for approval. Needs the role `operate`.
    Refuse {
        /// The task's id.
        id: String,
        /// Why: the group reads it.
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
        /// The step that asks; without it, the one that asks now.
        #[arg(long)]
        step: Option<u32>,
    },
    /// A new task that shares the history of another up to a step, and makes that step anew.
    Retry {
        /// The task's id.
        id: String,
        /// The first step that is made anew.
        #[arg(long, value_name = "STEP", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        from_step: u32,
        /// The new task's id, chosen by you.
        #[arg(long, value_name = "ID")]
        new_id: Option<String>,
        /// Planning loops at most, the shared ones included.
        #[arg(long)]
        max_steps: Option<u32>,
        /// How long the group may take: seconds, or a time such as `90s` or `2m`.
        #[arg(long, value_name = "TIME", value_parser = time)]
        timeout: Option<Duration>,
        /// Another seed of the sampling than the first task's.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Remove ended tasks for good, and what memory knows of them. Needs the role `operate`.
    Delete {
        /// The tasks' ids.
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

/// Where the tasks of a list stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListedState {
    /// Not taken up yet.
    Submitted,
    /// A gateway works at it.
    Running,
    /// A client has stopped it for a while.
    Paused,
    /// It waits for an answer or an approval.
    InputRequired,
    /// It has ended.
    Finished,
}
