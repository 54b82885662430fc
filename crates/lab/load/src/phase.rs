//! The parts of a task's latency: the process that spent the time, and the kind of work.

use std::fmt;

/// The process in which a part of a task's time was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    /// This program, and the network to the gateway and back.
    Client,
    /// The gateway, and the bus behind it.
    Gateway,
    /// Plan-Agent, π_plan.
    Plan,
    /// Tool-Agent, π_tool, and the tools that it runs.
    Tool,
    /// Reflect-Agent, π_reflect.
    Reflect,
}

impl Agent {
    /// All agents, in the order of a task.
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
    /// The network to the gateway and back.
    Network,
    /// Accepted and queued, before a gateway has taken the lease.
    Lease,
    /// In the queue of a model or of tool runs.
    Queue,
    /// Prefill of the prompt.
    Prefill,
    /// Decoding.
    Decode,
    /// The run of a tool.
    Tool,
    /// Writing events to the bus and reading them.
    Bus,
    /// Agent calls: the network both ways, and the agent's work other than the model.
    Call,
    /// Failed attempts of calls, and the pauses after them.
    Retry,
    /// The gateway's own work.
    Own,
    /// From the end of the task until the gateway sent it: storing and reading the last event.
    Delivery,
}

impl Phase {
    /// All phases, in the order of a task.
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

/// A call of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Plan: a thought and a tool's name.
    Plan,
    /// Parameterize: the parameters of a tool.
    Parameterize,
    /// Execute: the run of a tool.
    Execute,
    /// Reflect: a verdict.
    Reflect,
    /// Recall: a query of the memory service by this program, outside of tasks.
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
