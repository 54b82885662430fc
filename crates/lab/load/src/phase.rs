//! Names of the parts of a task's latency: who spent the time, and on what.

use std::fmt;

/// The process in which a part of a task's time was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    /// This program, and the way to the gateway and back.
    Client,
    /// The gateway, and the bus behind it.
    Gateway,
    /// π_plan
    Plan,
    /// π_tool, and the tools it runs.
    Tool,
    /// π_reflect
    Reflect,
}

impl Agent {
    /// All of them, in the order of a task.
    pub const ALL: [Agent; 5] = [Agent::Client, Agent::Gateway, Agent::Plan, Agent::Tool, Agent::Reflect];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Agent::Client => "client",
            Agent::Gateway => "gateway",
            Agent::Plan => "plan",
            Agent::Tool => "tool",
            Agent::Reflect => "reflect",
        }
    }
}

/// The kind of work on which a part of a task's time was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// From the intended arrival until the request was sent.
    Wait,
    /// On the way to the gateway and back.
    Network,
    /// Accepted, and no gateway has a place for it yet.
    Lease,
    /// Waiting for a model or for a place to run a tool.
    Queue,
    /// A model reads the prompt.
    Prefill,
    /// A model writes.
    Decode,
    /// A tool runs.
    Tool,
    /// Events are stored on the bus and read from it.
    Bus,
    /// Of agent calls: the network both ways, and the agent's work other than the model.
    Call,
    /// Attempts that failed, and the pauses after them.
    Retry,
    /// The gateway's own work.
    Own,
    /// From the end of the task until the gateway sent it: storing the last event, and hearing of it.
    Delivery,
}

impl Phase {
    /// All of them, in the order of a task.
    pub const ALL: [Phase; 12] = [
        Phase::Wait,
        Phase::Network,
        Phase::Lease,
        Phase::Queue,
        Phase::Prefill,
        Phase::Decode,
        Phase::Tool,
        Phase::Bus,
        Phase::Call,
        Phase::Retry,
        Phase::Own,
        Phase::Delivery,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Wait => "wait",
            Phase::Network => "network",
            Phase::Lease => "lease",
            Phase::Queue => "queue",
            Phase::Prefill => "prefill",
            Phase::Decode => "decode",
            Phase::Tool => "tool",
            Phase::Bus => "bus",
            Phase::Call => "call",
            Phase::Retry => "retry",
            Phase::Own => "own",
            Phase::Delivery => "delivery",
        }
    }

    /// Its meaning, for readers of a report.
    pub fn about(self) -> &'static str {
        match self {
            Phase::Wait => "intended arrival until the request was sent",
            Phase::Network => "client to gateway and back",
            Phase::Lease => "accepted, waiting for a gateway's place",
            Phase::Queue => "waiting for a model or a tool's place",
            Phase::Prefill => "a model reads the prompt",
            Phase::Decode => "a model writes",
            Phase::Tool => "a tool runs",
            Phase::Bus => "events stored on the bus and read from it",
            Phase::Call => "calls of agents beside the model: gRPC, tokens, grammar",
            Phase::Retry => "attempts that failed and pauses after them",
            Phase::Own => "the gateway's own work",
            Phase::Delivery => "the last event stored, heard of and sent",
        }
    }
}

/// One call of a service, timed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// A thought and a tool's name.
    Plan,
    /// The parameters of a tool.
    Parameterize,
    /// A tool's run.
    Execute,
    /// A verdict.
    Reflect,
    /// A query of the memory service by this program, outside of the tasks.
    Recall,
}

impl Call {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Call::Plan => "plan",
            Call::Parameterize => "parameterize",
            Call::Execute => "execute",
            Call::Reflect => "reflect",
            Call::Recall => "memory recall",
        }
    }

    /// The agent; `None` for the memory service, which is not part of a task's latency.
    pub fn agent(self) -> Option<Agent> {
        match self {
            Call::Plan => Some(Agent::Plan),
            Call::Parameterize | Call::Execute => Some(Agent::Tool),
            Call::Reflect => Some(Agent::Reflect),
            Call::Recall => None,
        }
    }
}

macro_rules! display {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )*};
}
display!(Agent, Phase, Call);
