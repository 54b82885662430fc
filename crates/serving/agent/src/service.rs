//! An agent as a service, the same for all three. What differs is an [`AgentRole`].

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use autoact_service::{Flag, Service, Setup, StartError, deadline};
use autoact_speaker::{ReplyEvent, usage};
use autoact_wire::status::to_status;
use autoact_wire::{agents_v1, v1};
use futures::StreamExt as _;
use tonic::{Request, Response, Status};

use crate::agent::Agent;
use crate::config::engine_flags;
use crate::count::token_counter;
use crate::error::AgentError;
use crate::role::{AgentRole, Whole};
use crate::settings::AgentConfig;
use crate::speech::{self, Speech};
use crate::watch::watch_health;

/// What a streaming rpc returns.
pub type Stream<R> = Pin<Box<dyn futures::Stream<Item = Result<R, Status>> + Send>>;

/// The service of an agent.
pub struct AgentService<R>(PhantomData<R>);

impl<R: AgentRole> Service for AgentService<R> {
    type Config = AgentConfig<R>;
    const ABOUT: &'static str = R::ABOUT;

    fn flags() -> Vec<Flag> {
        let mut flags = engine_flags();
        flags.extend(R::flags());
        flags
    }

    async fn build(config: AgentConfig<R>, setup: &mut Setup) -> Result<(), StartError> {
        let resources = R::open(&config.own, setup).await?;
        let agent = crate::load::open(R::ROLE, config.sources(), &config.engine, setup).await?;
        install(agent, resources, &config, setup);
        Ok(())
    }
}

/// Serves an agent: [`Service::build`] does it with what is configured, tests with a model of
/// theirs.
pub fn install<R: AgentRole>(agent: Arc<Agent>, resources: R::Resources, config: &AgentConfig<R>, setup: &mut Setup) {
    let health = watch_health(Arc::clone(&agent), setup.condition("model"), config.engine.health_interval);
    setup.tasks().spawn("model health", health);
    let (watched, most) = (Arc::clone(&agent), config.engine.stuck_after);
    setup.alive_while("model", move || watched.backend().at_work().is_none_or(|lasts| lasts < most));
    setup.serve(token_counter(Arc::clone(&agent)));
    R::serve(agent, resources, &config.own, setup);
}

/// Answers the rpc that lets an agent speak.
///
/// # Errors
/// The request is refused, or the model's queue is full.
pub async fn answer<R: AgentRole>(agent: &Arc<Agent>, request: Request<R::Request>) -> Result<Response<Stream<R::Response>>, Status> {
    let deadline = deadline(&request);
    let (trajectory, sampling, tenant) = R::asked(request.into_inner());
    let request = speech::Request { trajectory, sampling, deadline, tenant };
    let speech = agent.speak(request).await.map_err(|error| to_status(&error))?;
    Ok(Response::new(stream::<R>(speech)))
}

/// A speech as the responses of the rpc of its role.
fn stream<R: AgentRole>(speech: Speech) -> Stream<R::Response> {
    let tools = speech.tools().to_vec();
    let chosen = speech.tool().cloned();
    let calibration = speech.calibration().cloned();
    let spoken = futures::stream::unfold(speech, |mut speech| async move { Some((speech.next().await?, speech)) });
    let responses = spoken.map(move |spoken| match spoken {
        Ok(ReplyEvent::Delta(text)) => Ok(R::delta(agents_v1::Delta { text })),
        Ok(ReplyEvent::Done(generated)) => {
            let usage = v1::Usage::from(&usage(&generated));
            let whole = Whole { reply: &generated, tools: &tools, chosen: chosen.as_ref(), calibration: calibration.as_deref() };
            R::result(whole, usage).map_err(|error| to_status(&AgentError::Speak(error.into())))
        }
        Err(error) => Err(to_status(&error)),
    });
    Box::pin(responses)
}
