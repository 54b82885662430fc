//! Many questions at once: each gets its own trajectory, and what its tools returned really is what
//! they return.

use anyhow::Context as _;
use autoact_testkit::Group;
use autoact_testkit::files::root;
use autoact_wire::agents_v1;
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};
use futures::future::try_join_all;
use tonic::transport::Channel;

use crate::clients::{ask, check_whole, finished, gateway, task};

const AT_ONCE: usize = 32;

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_questions_at_once_each_get_their_own_trajectory() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let questions = questions(group.assets().trained)?;
    let mut asked = Vec::new();
    for (question, _) in &questions {
        let mut client = gateway(&group.gateway())?;
        asked.push(async move { ask(&mut client, task(question)).await.with_context(|| question.clone()) });
    }
    let all = try_join_all(asked).await?;

    let mut ids: Vec<&str> = all.iter().map(|events| events[0].task_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), AT_ONCE, "every question is a task of its own");

    let mut tools = autoact_wire::limited!(ToolAgentClient::new(group.channel("tool-agent")?));
    let mut right = 0;
    for (number, ((question, answer), events)) in questions.iter().zip(&all).enumerate() {
        check_whole(events, question).with_context(|| question.clone())?;
        replay(&mut tools, number, events).await.with_context(|| question.clone())?;
        right += usize::from(finished(events)?.answer.eq_ignore_ascii_case(answer));
    }
    if group.assets().trained {
        println!("{right} of {AT_ONCE} answers are right");
        // how good the model is, `autoact eval` tells; here most answers have to come out right,
        // whatever the others do
        assert!(right * 2 >= AT_ONCE, "only {right} of {AT_ONCE} answers are right");
    }
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

/// Questions of the held-out set with their answers; any will do for a random model.
fn questions(trained: bool) -> anyhow::Result<Vec<(String, String)>> {
    if !trained {
        return Ok((1..=AT_ONCE).map(|number| (format!("What is {number} times {number}?"), (number * number).to_string())).collect());
    }
    let path = root().join("corpora/atlas/questions/held-out.jsonl");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let lines: Vec<&str> = text.lines().collect();
    anyhow::ensure!(lines.len() >= AT_ONCE, "`{}` has {} questions", path.display(), lines.len());
    let spread = lines.iter().step_by(lines.len() / AT_ONCE).take(AT_ONCE);
    spread
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line)?;
            let text = |name: &str| row[name].as_str().map(str::to_owned).with_context(|| format!("no `{name}` in `{line}`"));
            Ok((text("text")?, text("answer")?))
        })
        .collect()
}

/// Runs every action of a trajectory again: an observation that belongs to another task would
/// differ.
async fn replay(tools: &mut ToolAgentClient<Channel>, number: usize, events: &[TrajectoryEvent]) -> anyhow::Result<()> {
    let Some(Body::Submitted(submitted)) = &events[0].body else { anyhow::bail!("no question") };
    let mut trajectory = v1::Trajectory {
        task_id: format!("replay-{number}"),
        question: submitted.question.clone(),
        tools: submitted.tools.clone(),
        context: submitted.context.clone(),
        ..v1::Trajectory::default()
    };
    let mut step: Option<v1::Step> = None;
    for event in events {
        match &event.body {
            Some(Body::Thought(thought)) => {
                let open = v1::Step { thought: thought.thought.clone(), tool: thought.tool.clone(), ..v1::Step::default() };
                trajectory.turns.extend(step.replace(open).map(turn));
            }
            Some(Body::Action(action)) => {
                let open = step.as_mut().context("an action follows a thought")?;
                anyhow::ensure!(open.tool == action.tool, "the action is `{}`, the thought chose `{}`", action.tool, open.tool);
                open.params = Some(action.params.clone());
            }
            Some(Body::Observation(seen)) => {
                let mut open = step.take().context("an observation follows an action")?;
                let mut so_far = trajectory.clone();
                so_far.turns.push(turn(open.clone()));
                let action = v1::Action { tool: open.tool.clone(), params: open.params.clone().unwrap_or_default() };
                let step = trajectory.turns.len() as u32;
                let request = agents_v1::ExecuteRequest {
                    task_id: trajectory.task_id.clone(),
                    step,
                    action: Some(action),
                    trajectory: Some(so_far),
                    ..agents_v1::ExecuteRequest::default()
                };
                let again = tools.execute(request).await?.into_inner().observation;
                // the gateway adds a note to an action that was repeated
                anyhow::ensure!(
                    seen.text == again || seen.repeated,
                    "`{}[{}]` gave `{}`, and now `{again}`",
                    open.tool,
                    open.params(),
                    seen.text
                );
                open.observation = Some(seen.text.clone());
                trajectory.turns.push(turn(open));
            }
            Some(Body::Reflection(reflection)) => {
                trajectory.turns.extend(step.take().map(turn));
                trajectory.turns.push(v1::Turn { turn: Some(v1::turn::Turn::Reflection(reflection.clone())) });
            }
            _ => {}
        }
    }
    Ok(())
}

fn turn(step: v1::Step) -> v1::Turn {
    v1::Turn { turn: Some(v1::turn::Turn::Step(step)) }
}
