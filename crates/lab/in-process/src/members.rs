//! The agents and tools of the group, over one model and one tool library.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use autoact_config::duration;
use autoact_model::{GenerateError, Generated, WordBias, WordLimit};
use autoact_planning::{
    Agents, Call, Contexts, Execution, Failure, FailureClass, NoMemories, PlanAgent, ReflectAgent, Reply, Seen, ToolAgent, Tools,
};
use autoact_speaker::{ParseError, SpeakError, SpeakRequest, Speaker, params, reflection, thought, usage};
use autoact_tools::ToolLibrary;
use autoact_trajectory::{Action, Calibration, Effect, Judgement, Observation, PromptSize, Role, TaskKey, Thought, Trajectory, Usage};

use crate::failure::failure;
use crate::guide::{Guide, Proposals};
use crate::voices::Voices;

/// Maximum pause before an overloaded model is called again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The name of the tools in failures.
const TOOLS: &str = "tools";

/// The three agents and the tools. Their calls block the thread.
pub(crate) struct Members {
    pub(crate) speaker: Speaker,
    pub(crate) voices: Voices,
    pub(crate) library: Arc<ToolLibrary>,
    /// Logit bias on words, for Plan-Agent only.
    pub(crate) word_bias: Vec<WordBias>,
    /// What chooses among proposals.
    pub(crate) guide: Option<Arc<dyn Guide>>,
    /// What Reflect-Agent's judgements are worth.
    pub(crate) calibration: Option<Arc<Calibration>>,
}

impl Members {
    /// This value in all parts of the driver's interface.
    pub(crate) fn agents(self) -> Agents {
        let all = Arc::new(self);
        Agents {
            plan: Arc::clone(&all) as _,
            tool: Arc::clone(&all) as _,
            reflect: Arc::clone(&all) as _,
            tools: Arc::clone(&all) as _,
            contexts: all,
            memories: Arc::new(NoMemories),
        }
    }

    /// What the open step's tool returns to these parameters; `None` if it ends the task, if running it
    /// may change the world, or if it does not return in time.
    fn would_see(&self, call: &Call<'_>, params: &str) -> Option<String> {
        let tool = call.trajectory.open_step()?.tool.clone();
        let spec = call.trajectory.tool(&tool)?;
        let runs = !spec.is_terminal() && spec.effect != Effect::SideEffect;
        let action = Action { tool, params: params.to_owned() };
        let seen = runs.then(|| self.run(&action, call.trajectory, spec.timeout.min(call.time_left)).ok())??;
        Some(seen.ok()?.text)
    }

    /// Runs the tool on its own thread, so that a tool that hangs or panics does not stop the task.
    fn run(
        &self,
        action: &Action,
        trajectory: &Trajectory,
        time: Duration,
    ) -> io::Result<Result<autoact_tools::Observation, RecvTimeoutError>> {
        let (library, action, trajectory) = (Arc::clone(&self.library), action.clone(), trajectory.clone());
        let (sender, result) = sync_channel(1);
        thread::Builder::new().name("tool".to_owned()).spawn(move || {
            // sending fails if the time is up and nobody waits
            let _ = sender.send(library.execute(&action, &trajectory));
        })?;
        Ok(result.recv_timeout(time))
    }

    /// The parsed reply of `role`. An overloaded model is called again while the task has time.
    async fn say<T>(
        &self,
        role: Role,
        call: &Call<'_>,
        adapter: Option<&str>,
        (word_bias, word_limit): (&[WordBias], Option<&WordLimit>),
        parse: impl Fn(&Generated) -> Result<T, ParseError> + Send + Sync,
    ) -> Result<Reply<T>, Failure> {
        let first = Instant::now();
        let deadline = first.checked_add(call.time_left);
        let request = SpeakRequest {
            role,
            trajectory: call.trajectory,
            sampling: call.sampling,
            adapter,
            word_bias,
            word_limit,
            deadline,
            owner: None,
        };
        loop {
            let begun = Instant::now();
            let error = match self.speaker.reply(&request).await {
                Ok(generated) => {
                    let value = parse(&generated).map_err(|error| failure(role, error.into()))?;
                    let usage = Usage { total: begun.elapsed(), ..usage(&generated) };
                    return Ok(Reply { value, usage, retry: begun.duration_since(first) });
                }
                Err(error) => error,
            };
            match pause(&error, deadline) {
                Some(pause) => wait(pause),
                None => return Err(failure(role, error)),
            }
        }
    }
}

/// The pause before the call is repeated; `None` if it is not repeated.
fn pause(error: &SpeakError, deadline: Option<Instant>) -> Option<Duration> {
    let SpeakError::Generate(GenerateError::Overloaded { retry_after }) = error else { return None };
    let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
    (!left.is_zero()).then(|| left.min(*retry_after).min(LONGEST_PAUSE))
}

#[expect(clippy::disallowed_methods, reason = "the model says when it will have room, and nothing tells earlier")]
fn wait(pause: Duration) {
    thread::sleep(pause);
}

#[async_trait]
impl PlanAgent for Members {
    async fn plan(&self, call: Call<'_>) -> Result<Reply<Thought>, Failure> {
        let mut proposals = Proposals::of(self.guide.as_deref(), Role::Plan, call);
        let limit = self.guide.as_ref().and_then(|guide| guide.limit(call.trajectory));
        loop {
            let mut bias = self.word_bias.clone();
            bias.extend(self.guide.iter().flat_map(|guide| guide.bias(call.trajectory, &proposals.rejected)));
            let parse = |reply: &Generated| thought(&reply.text, &call.trajectory.tools);
            let reply = self.say(Role::Plan, &proposals.next(), self.voices.of(Role::Plan), (&bias, limit.as_ref()), parse).await?;
            if let Some(settled) = proposals.settle(reply, |guide, thought| guide.accepts_thought(call.trajectory, thought)) {
                return settled;
            }
        }
    }
}

#[async_trait]
impl ToolAgent for Members {
    async fn parameterize(&self, call: Call<'_>) -> Result<Reply<String>, Failure> {
        let trajectory = call.trajectory;
        let tool = trajectory.open_step().map(|step| step.tool.as_str()).unwrap_or_default();
        let spec = trajectory.tool(tool);
        let mut proposals = Proposals::of(self.guide.as_deref(), Role::Tool, call);
        loop {
            let parse = |reply: &Generated| params(&reply.text, spec);
            let rejected = proposals.rejected.len();
            let bias: Vec<WordBias> = self.guide.iter().flat_map(|guide| guide.params_bias(trajectory, rejected)).collect();
            let reply = self.say(Role::Tool, &proposals.next(), self.voices.of_tool(tool), (&bias, None), parse).await?;
            let accepts =
                |guide: &dyn Guide, params: &String| guide.accepts_params(trajectory, params, self.would_see(&call, params).as_deref());
            if let Some(settled) = proposals.settle(reply, accepts) {
                return settled;
            }
        }
    }
}

#[async_trait]
impl ReflectAgent for Members {
    async fn reflect(&self, call: Call<'_>) -> Result<Reply<Judgement>, Failure> {
        self.say(Role::Reflect, &call, self.voices.of(Role::Reflect), (&[], None), |reply| {
            Ok(Judgement { reflection: reflection(reply)?, calibration: self.calibration.clone() })
        })
        .await
    }
}

#[async_trait]
impl Contexts for Members {
    fn room(&self, role: Role) -> Option<usize> {
        Some(self.speaker.room(role))
    }

    async fn measure(&self, role: Role, _: &TaskKey, trajectory: &Trajectory, _: Duration) -> Result<PromptSize, Failure> {
        self.speaker.measure(role, trajectory).await.map_err(|error| failure(role, error))
    }
}

#[async_trait]
impl Tools for Members {
    async fn execute(&self, execution: Execution<'_>) -> Result<Reply<Seen>, Failure> {
        let Execution { call, action, spec, may_have_run: _ } = execution;
        let own = spec.map_or(Duration::MAX, |spec| spec.timeout);
        let begun = Instant::now();
        let ran = self.run(action, call.trajectory, own.min(call.time_left));
        let seen = match ran.map_err(|error| Failure::new(FailureClass::Broken, TOOLS, error))? {
            Ok(seen) => {
                let autoact_tools::Observation { text, is_error, truncated, refers_back: _, artifacts, sources } = seen;
                Seen { observation: Observation { text, is_error, repeated: false, truncated, sources, untrusted: true }, artifacts }
            }
            Err(RecvTimeoutError::Timeout) if own <= call.time_left => {
                let text = format!("{} failed: no answer within {}", action.tool, duration::format(own));
                Observation { text, is_error: true, ..Observation::default() }.into()
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(Failure::new(FailureClass::TimedOut, TOOLS, "no answer within the task's time"));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::new(FailureClass::Broken, TOOLS, "it panicked")),
        };
        let took = begun.elapsed();
        Ok(Reply::new(seen, Usage { tool: took, total: took, ..Usage::default() }))
    }
}
