//! `autoact memory`: its words.

use autoact_trajectory::Tenant;
use autoact_wire::memory_v1;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};

/// `autoact memory`
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Finished tasks similar to a question.
    Recall {
        /// What to look for.
        query: String,
        /// How many.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
        /// Only tasks whose answer was approved.
        #[arg(long)]
        approved: bool,
        /// Only of this conversation.
        #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
        conversation: String,
        #[command(flatten)]
        options: MemoryOptions,
    },
    /// What is remembered, the newest first.
    List {
        /// Only of this conversation.
        #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
        conversation: String,
        /// Only of this kind.
        #[arg(long)]
        kind: Option<MemoryKind>,
        /// How many.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        #[command(flatten)]
        options: MemoryOptions,
    },
    /// One memory, by the id of its task.
    Show {
        /// The task's id.
        id: String,
        /// As what it is remembered; without it whichever there is.
        #[arg(long)]
        kind: Option<MemoryKind>,
        #[command(flatten)]
        options: MemoryOptions,
    },
    /// Forget a task, a conversation, what ended before a time, or everything of a tenant.
    #[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
    Forget {
        /// The task's id.
        #[arg(group = "what", conflicts_with_all = ["conversation", "before", "all"])]
        id: Option<String>,
        /// The memories of this conversation.
        #[arg(long, value_name = "ID", group = "what")]
        conversation: Option<String>,
        /// The memories of tasks that had ended by then: RFC 3339, such as `2026-11-22T07:30:00Z`.
        #[arg(long, value_name = "TIME", group = "what", value_parser = super::values::timestamp)]
        before: Option<prost_types::Timestamp>,
        /// Everything that is remembered of the tenant.
        #[arg(long, group = "what", conflicts_with_all = ["conversation", "before"])]
        all: bool,
        /// Only of this kind.
        #[arg(long)]
        kind: Option<MemoryKind>,
        #[command(flatten)]
        options: MemoryOptions,
    },
}

/// Whose memories, where, and how they are printed.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct MemoryOptions {
    /// Whose memories. Without it, those of the token's tenant, or of `default` where there is no
    /// token.
    #[arg(long)]
    pub(crate) tenant: Option<Tenant>,
    /// Where the memory service listens.
    #[arg(long, env = "AUTOACT_MEMORY", default_value = "127.0.0.1:7404")]
    pub(crate) memory: String,
    /// JSON for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

/// As what something is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MemoryKind {
    /// A finished task.
    Task,
    /// A turn of a conversation.
    Conversation,
}

impl From<MemoryKind> for memory_v1::MemoryKind {
    fn from(kind: MemoryKind) -> Self {
        match kind {
            MemoryKind::Task => memory_v1::MemoryKind::Task,
            MemoryKind::Conversation => memory_v1::MemoryKind::Conversation,
        }
    }
}
