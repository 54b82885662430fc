//! The planning loop: one driver that asks the agents, runs the tools and appends to a log, over
//! traits for all three.
//!
//! What comes next is decided by [`autoact_trajectory::decide`], a pure function of the task. The
//! [`Driver`] does it: it makes the call, turns the reply into an event, stores the event and
//! applies it. The gateway drives over JetStream and gRPC; learning, evaluation and the planners
//! drive over memory and an engine in the same process. What is learned is therefore what is
//! served.
//!
//! Before an agent is asked, the driver sees that its prompt fits the models' contexts
//! ([`Contexts`]). Where it does not, the history that agents are shown is shortened once for all
//! three, and that is an event like any other.
//!
//! A call that fails has a [`FailureClass`], set where the call is made. What is repeated, waited
//! for, told to the group or told to the user follows from the class and the tool's effect alone.

mod agents;
mod clock;
mod contexts;
mod driver;
mod failure;
mod log;
mod memories;

pub use agents::{Agents, Call, Execution, PlanAgent, ReflectAgent, Reply, Seen, ToolAgent, Tools};
pub use contexts::{Contexts, check_fixed_parts};
pub use driver::{Driver, DriverOptions, Progress, Stop};
pub use failure::{Failure, FailureClass};
pub use log::{Appended, EventLog, MemoryLog, NeverFails};
pub use memories::{Memories, NoMemories};
