//! Between the domain and the messages of `autoact.v1`. What comes from the wire is checked here,
//! once.

use std::time::Duration;

use autoact_trajectory::{
    Action, Asks, Calibration, Effect, InvalidCalibration, Limits, MAX_OBSERVATION_BYTES, NewArtifact, ParameterSchema, Reflection, Step,
    Term, Terminal, ToolSpec, Trajectory, Turn, Verdict,
};

use crate::context::context_to_proto;
use crate::{ConversionError, agents_v1, next_attempt, next_attempt_to_proto, v1};

/// Used when a spec from the wire names no timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Used when a spec from the wire names no bound.
const DEFAULT_OBSERVATION_BYTES: usize = 4096;

/// A domain duration as protobuf's.
pub fn duration_to_proto(duration: Duration) -> prost_types::Duration {
    prost_types::Duration { seconds: duration.as_secs().min(i64::MAX as u64) as i64, nanos: duration.subsec_nanos() as i32 }
}

/// A protobuf duration as ours; negative ones count as zero.
pub fn duration_from_proto(duration: prost_types::Duration) -> Duration {
    Duration::try_from(duration).unwrap_or_default()
}

impl From<Effect> for v1::Effect {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::ReadOnly => v1::Effect::ReadOnly,
            Effect::Idempotent => v1::Effect::Idempotent,
            Effect::SideEffect => v1::Effect::SideEffect,
        }
    }
}

impl From<&ToolSpec> for v1::ToolSpec {
    fn from(spec: &ToolSpec) -> Self {
        v1::ToolSpec {
            name: spec.name.clone(),
            definition: spec.definition.clone(),
            usage: spec.usage.clone(),
            effect: v1::Effect::from(spec.effect) as i32,
            timeout: Some(duration_to_proto(spec.timeout)),
            max_observation_bytes: u32::try_from(spec.max_observation_bytes).unwrap_or(u32::MAX),
            terminal: spec.is_terminal(),
            no_answer: spec.is_no_answer(),
            schema: spec.schema.as_ref().map(|schema| schema.as_str().to_owned()).unwrap_or_default(),
            examples: spec.examples.clone(),
            multiline: spec.multiline,
            needs_approval: spec.needs_approval(),
            asks_user: spec.asks_user(),
        }
    }
}

impl TryFrom<v1::ToolSpec> for ToolSpec {
    type Error = ConversionError;

    fn try_from(spec: v1::ToolSpec) -> Result<Self, Self::Error> {
        if spec.name.is_empty() {
            return Err(ConversionError::MissingField("name"));
        }
        // an unspecified effect is taken as the dangerous one
        let effect = match spec.effect() {
            v1::Effect::ReadOnly => Effect::ReadOnly,
            v1::Effect::Idempotent => Effect::Idempotent,
            v1::Effect::SideEffect | v1::Effect::Unspecified => Effect::SideEffect,
        };
        let bound = spec.max_observation_bytes as usize;
        let schema = match spec.schema.as_str() {
            "" => None,
            text => Some(ParameterSchema::parse(text).map_err(|source| ConversionError::Schema { tool: shown(&spec.name), source })?),
        };
        Ok(ToolSpec {
            effect,
            timeout: spec.timeout.map_or(DEFAULT_TIMEOUT, duration_from_proto),
            max_observation_bytes: if bound == 0 { DEFAULT_OBSERVATION_BYTES } else { bound.min(MAX_OBSERVATION_BYTES) },
            terminal: Terminal::from_flags(spec.terminal, spec.no_answer),
            name: spec.name,
            definition: spec.definition,
            usage: spec.usage,
            schema,
            examples: spec.examples,
            multiline: spec.multiline,
            asks: Asks::from_flags(spec.needs_approval, spec.asks_user),
        })
    }
}

/// A name for a message.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

impl From<NewArtifact> for agents_v1::NewArtifact {
    fn from(artifact: NewArtifact) -> Self {
        let NewArtifact { kind, media_type, name, text, data } = artifact;
        agents_v1::NewArtifact { kind, media_type, name, text, data }
    }
}

impl From<agents_v1::NewArtifact> for NewArtifact {
    fn from(artifact: agents_v1::NewArtifact) -> Self {
        let agents_v1::NewArtifact { kind, media_type, name, text, data } = artifact;
        NewArtifact { kind, media_type, name, text, data }
    }
}

impl From<&Action> for v1::Action {
    fn from(action: &Action) -> Self {
        v1::Action { tool: action.tool.clone(), params: action.params.clone() }
    }
}

impl From<v1::Action> for Action {
    fn from(action: v1::Action) -> Self {
        Action { tool: action.tool, params: action.params }
    }
}

impl From<Verdict> for v1::Verdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Right => v1::Verdict::Right,
            Verdict::Wrong => v1::Verdict::Wrong,
        }
    }
}

impl TryFrom<v1::Verdict> for Verdict {
    type Error = ConversionError;

    fn try_from(verdict: v1::Verdict) -> Result<Self, Self::Error> {
        match verdict {
            v1::Verdict::Right => Ok(Verdict::Right),
            v1::Verdict::Wrong => Ok(Verdict::Wrong),
            v1::Verdict::Unspecified => Err(ConversionError::MissingField("verdict")),
        }
    }
}

/// A number that can be computed with: what is not finite is as good as absent.
pub fn known(number: Option<f64>) -> Option<f64> {
    number.filter(|number| number.is_finite())
}

impl From<&Calibration> for agents_v1::Calibration {
    fn from(calibration: &Calibration) -> Self {
        let Calibration { format, threshold, precision, intercept, terms, histories, next_attempt } = calibration.clone();
        let term = |Term { part, mean, deviation, weight }| agents_v1::Term { part, mean, deviation, weight };
        let terms = terms.into_iter().map(term).collect();
        let next_attempt = next_attempt_to_proto(Some(next_attempt));
        agents_v1::Calibration { threshold, precision, intercept, terms, histories, format, next_attempt }
    }
}

impl TryFrom<agents_v1::Calibration> for Calibration {
    type Error = InvalidCalibration;

    fn try_from(calibration: agents_v1::Calibration) -> Result<Self, Self::Error> {
        let agents_v1::Calibration { threshold, precision, intercept, terms, histories, format, next_attempt } = calibration;
        let term = |agents_v1::Term { part, mean, deviation, weight }| Term { part, mean, deviation, weight };
        let terms = terms.into_iter().map(term).collect();
        // agents of earlier releases do not say which format and which attempt, and have the first one
        let (format, next_attempt) = (format.max(1), crate::next_attempt(next_attempt).unwrap_or_default());
        let calibration = Calibration { format, threshold, precision, intercept, terms, histories, next_attempt };
        calibration.check()?;
        Ok(calibration)
    }
}

impl From<&Reflection> for v1::Reflection {
    fn from(reflection: &Reflection) -> Self {
        let Reflection { thought, verdict, log_odds, confidence, threshold, next_attempt } = reflection.clone();
        let next_attempt = next_attempt_to_proto(Some(next_attempt));
        v1::Reflection { thought, verdict: v1::Verdict::from(verdict) as i32, log_odds, confidence, threshold, next_attempt }
    }
}

impl TryFrom<v1::Reflection> for Reflection {
    type Error = ConversionError;

    fn try_from(reflection: v1::Reflection) -> Result<Self, Self::Error> {
        let verdict = reflection.verdict().try_into()?;
        Ok(Reflection {
            thought: reflection.thought,
            verdict,
            log_odds: known(reflection.log_odds),
            confidence: known(reflection.confidence),
            threshold: known(reflection.threshold),
            next_attempt: next_attempt(reflection.next_attempt).unwrap_or_default(),
        })
    }
}

impl From<&Turn> for v1::Turn {
    fn from(turn: &Turn) -> Self {
        let turn = match turn {
            Turn::Step(step) => v1::turn::Turn::Step(v1::Step {
                thought: step.thought.clone(),
                tool: step.tool.clone(),
                params: step.params.clone(),
                observation: step.observation.clone(),
                artifacts: step.artifacts.iter().map(Into::into).collect(),
                sources: step.sources.iter().map(Into::into).collect(),
            }),
            Turn::Reflection(reflection) => v1::turn::Turn::Reflection(reflection.into()),
        };
        v1::Turn { turn: Some(turn) }
    }
}

impl TryFrom<v1::Turn> for Turn {
    type Error = ConversionError;

    fn try_from(turn: v1::Turn) -> Result<Self, Self::Error> {
        match turn.turn.ok_or(ConversionError::MissingField("turn"))? {
            v1::turn::Turn::Step(step) => Ok(Turn::Step(Step {
                thought: step.thought,
                tool: step.tool,
                params: step.params,
                observation: step.observation,
                artifacts: step.artifacts.into_iter().map(Into::into).collect(),
                sources: step.sources.into_iter().map(Into::into).collect(),
            })),
            v1::turn::Turn::Reflection(reflection) => Ok(Turn::Reflection(reflection.try_into()?)),
        }
    }
}

/// What a request to an agent carries. Sources stay behind: no agent reads them.
impl From<&Trajectory> for v1::Trajectory {
    fn from(trajectory: &Trajectory) -> Self {
        let turns = trajectory.turns.iter().map(v1::Turn::from).map(|mut turn| {
            if let Some(v1::turn::Turn::Step(step)) = &mut turn.turn {
                step.sources.clear();
            }
            turn
        });
        v1::Trajectory {
            task_id: trajectory.task_id.clone(),
            question: trajectory.question.clone(),
            tools: trajectory.tools.iter().map(Into::into).collect(),
            turns: turns.collect(),
            left_out: trajectory.left_out,
            context: context_to_proto(&trajectory.context),
            recalled: trajectory.recalled.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::Trajectory> for Trajectory {
    type Error = ConversionError;

    fn try_from(trajectory: v1::Trajectory) -> Result<Self, Self::Error> {
        Ok(Trajectory {
            task_id: trajectory.task_id,
            question: trajectory.question,
            tools: trajectory.tools.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            turns: trajectory.turns.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            left_out: trajectory.left_out,
            context: trajectory.context.map(TryInto::try_into).transpose()?.unwrap_or_default(),
            recalled: trajectory.recalled.into_iter().map(Into::into).collect(),
        })
    }
}

/// The bounds a request asks for; absent ones are `defaults`'.
///
/// # Errors
/// The time is negative.
pub fn resolve_limits(asked: Option<v1::Limits>, defaults: &Limits) -> Result<Limits, ConversionError> {
    let asked = asked.unwrap_or_default();
    let max_time = match asked.max_time {
        None => defaults.max_time,
        Some(time) => Duration::try_from(time).map_err(|_| ConversionError::UnknownValue {
            field: "limits.max_time",
            value: format!("{}.{:09}s", time.seconds, time.nanos.unsigned_abs()),
        })?,
    };
    Ok(Limits {
        max_steps: asked.max_steps.unwrap_or(defaults.max_steps),
        max_reflections: asked.max_reflections.unwrap_or(defaults.max_reflections),
        max_tokens: asked.max_tokens.unwrap_or(defaults.max_tokens),
        max_time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_bounds_take_the_default_and_zero_is_a_bound() {
        let asked = v1::Limits { max_steps: Some(3), max_tokens: Some(0), ..v1::Limits::default() };
        let limits = resolve_limits(Some(asked), &Limits::default()).unwrap();
        assert_eq!(limits, Limits { max_steps: 3, max_tokens: 0, ..Limits::default() });
    }

    #[test]
    fn a_negative_time_is_refused() {
        let time = prost_types::Duration { seconds: -1, nanos: 0 };
        let asked = v1::Limits { max_time: Some(time), ..v1::Limits::default() };
        assert!(resolve_limits(Some(asked), &Limits::default()).is_err());
    }
}
