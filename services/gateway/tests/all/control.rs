//! Run control: pause, resume, answers, approvals, retries and deletions, across gateways that stop
//! and start.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::scripted::{Execute, Group, MemoryIs, Script, steps};
use crate::common::*;
use autoact_testkit::poll;
use autoact_trajectory::ApprovalPolicy;
use autoact_wire::status::{metadata, reason, retry_after};
use autoact_wire::v1::give_input_request::Input;
use autoact_wire::v1::{FinishReason, InputKind, TaskState};
use autoact_wire::{agents_v1, v1};
use tonic::Code;

/// Sends what was asked, then answers.
fn sends() -> Script {
    Script { plan: Box::new(|trajectory| if steps(trajectory).is_empty() { "Send".into() } else { "Finish".into() }), ..Script::default() }
}

/// Looks something up, then sends it, then answers.
fn looks_up_and_sends() -> Script {
    let plan = |trajectory: &v1::Trajectory| ["Retrieve", "Send", "Finish"][steps(trajectory).len().min(2)].to_owned();
    Script { plan: Box::new(plan), ..Script::default() }
}

fn runs(world: &World) -> usize {
    world.group.inner.runs.load(Ordering::SeqCst)
}

async fn state(client: &mut Client, id: &str, state: TaskState) -> v1::Task {
    let mut seen = None;
    let found = poll::until(LIMIT, async || {
        let task = get(&mut client.clone(), id).await;
        seen = Some(task.state());
        (task.state() == state).then_some(task)
    });
    found.await.unwrap_or_else(|| panic!("the task becomes {state:?}; it is {seen:?}"))
}

/// The ids of the tasks that a list of this state has.
async fn listed(client: &mut Client, state: TaskState) -> Vec<String> {
    let request = v1::ListTasksRequest { state: state as i32, ..Default::default() };
    client.list_tasks(request).await.unwrap().into_inner().tasks.into_iter().map(|task| task.task_id).collect()
}

/// The task has left the queue.
async fn unqueued(world: &World) {
    let config = config(&world.nats, &world.group);
    let bus = autoact_bus::Bus::connect(config.service.bus.config(&world.nats.url(), "test")).await.unwrap();
    assert!(poll::until(LIMIT, async || (bus.backlog().await.ok()? == 0).then_some(())).await.is_some());
}

fn approval(approved: bool, reason: &str) -> Input {
    Input::Approval(v1::Approval { approved, reason: reason.into(), for_task: false })
}

async fn give(client: &mut Client, id: &str, step: u32, input: Input) -> Result<v1::Task, tonic::Status> {
    let request = v1::GiveInputRequest { task_id: id.into(), step, input: Some(input) };
    Ok(client.give_input(request).await?.into_inner().task.unwrap())
}

fn pause(id: &str) -> v1::PauseTaskRequest {
    v1::PauseTaskRequest { task_id: id.into(), reason: "lunch".into() }
}

fn resume(id: &str) -> v1::ResumeTaskRequest {
    v1::ResumeTaskRequest { task_id: id.into() }
}

#[tokio::test]
async fn a_paused_task_goes_on_under_another_gateway() {
    let mut world = world(Group::start(Script::default()).await).await;
    world.group.hold_after(1);
    world.client.submit_task(named("t", "Loire")).await.unwrap();
    world.group.asked(2).await;
    let paused = world.client.pause_task(pause("t")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(paused.state(), TaskState::Paused);
    // whoever ran it hangs up at once, and it leaves the queue
    let hung_up = poll::until(LIMIT, async || (world.group.inner.open.load(Ordering::SeqCst) == 0).then_some(()));
    assert!(hung_up.await.is_some());
    unqueued(&world).await;
    let again = world.client.pause_task(pause("t")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(again.last_sequence, paused.last_sequence, "pausing a paused task changes nothing");
    assert_eq!(listed(&mut world.client, TaskState::Paused).await, ["t"]);
    // submitting it again does not let it go on
    let same = world.client.submit_task(named("t", "Loire")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(same.state(), TaskState::Paused);
    world.gateway.stop().await.unwrap();

    let (second, mut client) = start(config(&world.nats, &world.group)).await;
    world.group.go_on();
    let resumed = client.resume_task(resume("t")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(resumed.state(), TaskState::Running);
    let events = watch(&mut client, "t", 0).await;
    let expected = [
        "submitted",
        "started",
        "thought",
        "action",
        "observation",
        "paused",
        "resumed",
        "started",
        "thought",
        "action",
        "reflection",
        "finished",
    ];
    assert_eq!(names(&events), expected);
    assert!(end(&events).approved);
    // of a task that has ended nothing is left to pause
    let status = client.pause_task(pause("t")).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::FailedPrecondition, Some("TASK_ENDED")));
    assert!(client.resume_task(resume("t")).await.is_ok());
    second.stop().await.unwrap();
}

#[tokio::test]
async fn a_task_is_paused_before_anybody_takes_it_up_and_cancelled_meanwhile() {
    let mut world = world(Group::start(Script::default()).await).await;
    world.group.hold_after(0);
    for id in ["a", "b"] {
        world.client.submit_task(named(id, "Loire")).await.unwrap();
        world.client.pause_task(pause(id)).await.unwrap();
    }
    world.group.go_on();
    let cancelled = world.client.cancel_task(v1::CancelTaskRequest { task_id: "a".into() }).await.unwrap().into_inner().task.unwrap();
    assert_eq!((cancelled.state(), cancelled.reason()), (TaskState::Finished, FinishReason::Cancelled));
    world.client.resume_task(resume("b")).await.unwrap();
    assert!(end(&watch(&mut world.client, "b", 0).await).approved);
    // resuming what is not paused changes nothing
    assert!(world.client.resume_task(resume("b")).await.unwrap().into_inner().task.unwrap().approved);
}

/// Tasks that are held back are in no queue, and take room on the bus all the same.
#[tokio::test]
async fn a_tenant_cannot_hold_back_as_many_tasks_as_it_likes() {
    let mut world = world_with(Group::start(Script::default()).await, |config| (config.max_tasks, config.max_open) = (2, 3)).await;
    world.group.hold_after(0);
    for id in ["a", "b", "c"] {
        world.client.submit_task(named(id, "Loire")).await.unwrap();
        world.client.pause_task(pause(id)).await.unwrap();
        unqueued(&world).await;
    }
    let full = async |client: &mut Client| {
        let status = client.submit_task(named("full", "Loire")).await.unwrap_err();
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::ResourceExhausted, Some("TOO_MANY_OPEN")), "{status:?}");
        assert_eq!(metadata(&status)["limit"], "3");
        assert!(retry_after(&status).is_some());
    };
    full(&mut world.client).await;
    // what is there already is no new task
    world.client.submit_task(named("a", "Loire")).await.unwrap();
    // one that is cancelled makes room, though nobody runs it; so does one that goes on and ends
    world.client.cancel_task(v1::CancelTaskRequest { task_id: "a".into() }).await.unwrap();
    there_is_room(&mut world.client, "d").await;
    world.client.pause_task(pause("d")).await.unwrap();
    full(&mut world.client).await;
    world.group.go_on();
    world.client.resume_task(resume("b")).await.unwrap();
    assert!(end(&watch(&mut world.client, "b", 0).await).approved);
    there_is_room(&mut world.client, "e").await;
}

/// A task that is held back for as long as ended ones are kept is cancelled.
#[tokio::test]
async fn a_task_that_is_held_back_for_ever_is_cancelled() {
    let mut world = world_with(Group::start(Script::default()).await, |config| config.bus.max_age = Duration::from_secs(1)).await;
    world.group.hold_after(0);
    for id in ["runs", "held"] {
        world.client.submit_task(named(id, "Loire")).await.unwrap();
    }
    world.client.pause_task(pause("held")).await.unwrap();
    let events = watch(&mut world.client, "held", 0).await;
    let end = end(&events);
    assert_eq!((end.reason(), end.by.as_str()), (FinishReason::Cancelled, "gateway"));
    assert_eq!(get(&mut world.client, "runs").await.state(), TaskState::Running);
    world.group.go_on();
}

/// There is room for a task before long.
async fn there_is_room(client: &mut Client, id: &str) {
    let submitted = poll::until(LIMIT, async || client.clone().submit_task(named(id, "Loire")).await.ok()).await;
    assert!(submitted.is_some());
}

/// Whoever lets a task go on may die before it is queued again.
#[tokio::test]
async fn a_resumed_task_that_was_not_queued_is_found() {
    use autoact_bus::Bus;
    use autoact_trajectory::{Event, EventBody, Resumed, Task};
    let mut world = world(Group::start(Script::default()).await).await;
    world.group.hold_after(0);
    world.client.submit_task(named("t", "Loire")).await.unwrap();
    world.group.asked(1).await;
    world.client.pause_task(pause("t")).await.unwrap();
    unqueued(&world).await;
    let settings = config(&world.nats, &world.group);
    let bus = Bus::connect(settings.service.bus.config(&world.nats.url(), "test")).await.unwrap();
    let key = autoact_trajectory::TaskKey::new("default".parse().unwrap(), "t".parse().unwrap());
    let task = Task::fold(&bus.load(&key).await.unwrap()).unwrap();
    bus.record_resumption(&key).await.unwrap();
    let body = EventBody::Resumed(Resumed { by: "test".into() });
    let event = Event { epoch: 0, ..task.next_event(std::time::SystemTime::now(), "test", body) };
    bus.append(&event, task.last_sequence()).await.unwrap();
    world.group.go_on();
    assert!(end(&watch(&mut world.client, "t", 0).await).approved);
}

#[tokio::test]
async fn an_effect_waits_for_approval_across_a_restart() {
    let mut world = world_with(Group::start(sends()).await, |config| config.approval.policy = ApprovalPolicy::Effects).await;
    world.client.submit_task(named("t", "Loire")).await.unwrap();
    let task = state(&mut world.client, "t", TaskState::InputRequired).await;
    let asked = task.input_required.unwrap();
    assert_eq!((asked.step, asked.kind(), asked.tool.as_str(), asked.prompt.as_str()), (1, InputKind::Approval, "Send", "Loire"));
    unqueued(&world).await;
    world.gateway.stop().await.unwrap();
    let (second, mut client) = start(config(&world.nats, &world.group)).await;
    // another step, another kind of input
    for (step, input, expected) in
        [(2, approval(true, ""), "NOT_ASKED"), (1, Input::Answer("yes".into()), "NOT_ASKED"), (1, Input::Answer(" ".into()), "BAD_INPUT")]
    {
        let status = give(&mut client, "t", step, input).await.unwrap_err();
        assert_eq!(reason(&status).as_deref(), Some(expected));
        if expected == "NOT_ASKED" {
            assert_eq!((metadata(&status)["asked_step"].as_str(), metadata(&status)["asked"].as_str()), ("1", "approval"));
        }
    }
    let long = give(&mut client, "t", 1, approval(false, &"x".repeat(5000))).await.unwrap_err();
    assert_eq!((long.code(), reason(&long).as_deref()), (Code::InvalidArgument, Some("BAD_INPUT")));
    assert_eq!(world.group.inner.runs.load(Ordering::SeqCst), 0);

    let approved = give(&mut client, "t", 1, approval(true, "")).await.unwrap();
    assert_eq!(approved.state(), TaskState::Running);
    let events = watch(&mut client, "t", 0).await;
    assert!(end(&events).approved && end(&events).open_effect.is_none(), "{events:?}");
    assert_eq!(names(&events)[3..8], ["action", "input_requested", "input_given", "started", "observation"]);
    assert_eq!(world.group.inner.runs.load(Ordering::SeqCst), 1);
    assert_eq!(world.group.inner.may_have_run.load(Ordering::SeqCst), 0, "nobody had begun it");
    assert!(observations(&events)[0].untrusted, "a tool said it");
    second.stop().await.unwrap();
}

#[tokio::test]
async fn a_refused_effect_is_not_run_and_the_group_reads_why() {
    let mut world = world(Group::start(Script { approval: true, ..sends() }).await).await;
    world.client.submit_task(named("t", "Loire")).await.unwrap();
    state(&mut world.client, "t", TaskState::InputRequired).await;
    give(&mut world.client, "t", 1, approval(false, "wrong address")).await.unwrap();
    // said again: the same is nothing new, something else comes too late
    assert!(give(&mut world.client, "t", 1, approval(true, "")).await.is_err());
    let events = watch(&mut world.client, "t", 0).await;
    let seen = observations(&events)[0];
    assert!(seen.is_error && !seen.untrusted && seen.text.ends_with("wrong address"), "{seen:?}");
    assert_eq!(runs(&world), 0);
}

#[tokio::test]
async fn one_approval_can_hold_for_the_whole_task() {
    let plan = |trajectory: &v1::Trajectory| if steps(trajectory).len() < 3 { "Send".to_owned() } else { "Finish".to_owned() };
    let params = |trajectory: &v1::Trajectory| steps(trajectory).len().to_string();
    let script = Script { approval: true, plan: Box::new(plan), params: Box::new(params), ..Script::default() };
    let mut world = world(Group::start(script).await).await;
    world.client.submit_task(named("t", "Loire")).await.unwrap();
    state(&mut world.client, "t", TaskState::InputRequired).await;
    let always = Input::Approval(v1::Approval { approved: true, reason: String::new(), for_task: true });
    give(&mut world.client, "t", 1, always).await.unwrap();
    let events = watch(&mut world.client, "t", 0).await;
    assert_eq!(names(&events).iter().filter(|name| **name == "input_requested").count(), 1);
    assert_eq!(runs(&world), 3);
}

/// What a tool returned may have been written by anybody: where the tenant says so, no effect follows
/// from it without a person.
#[tokio::test]
async fn an_effect_after_a_tools_text_waits_where_the_tenant_says_so() {
    let policy = |policy| move |config: &mut gateway::GatewayConfig| config.approval.tenants = [("default".to_owned(), policy)].into();
    for (script, expected) in [(sends(), false), (looks_up_and_sends(), true)] {
        let mut world = world_with(Group::start(script).await, policy(ApprovalPolicy::Untrusted)).await;
        world.client.submit_task(named("t", "Loire")).await.unwrap();
        if expected {
            let asked = state(&mut world.client, "t", TaskState::InputRequired).await.input_required.unwrap();
            assert_eq!((asked.step, runs(&world)), (2, 1));
            give(&mut world.client, "t", 2, approval(true, "")).await.unwrap();
        }
        let events = watch(&mut world.client, "t", 0).await;
        assert_eq!(names(&events).contains(&"input_requested"), expected);
        assert!(end(&events).approved);
    }
    // a request may ask for more than its tenant's policy, and for no less
    let mut world = world_with(Group::start(looks_up_and_sends()).await, policy(ApprovalPolicy::Tools)).await;
    let asked = |approval: v1::ApprovalPolicy| v1::SubmitTaskRequest { approval: approval as i32, ..task("Loire") };
    assert!(end(&ask(&mut world.client, task("Loire")).await).approved);
    let strict = world.client.submit_task(asked(v1::ApprovalPolicy::Effects)).await.unwrap().into_inner().task.unwrap();
    state(&mut world.client, &strict.task_id, TaskState::InputRequired).await;
    let mut world = world_with(Group::start(sends()).await, policy(ApprovalPolicy::Effects)).await;
    let lax = world.client.submit_task(asked(v1::ApprovalPolicy::Tools)).await.unwrap().into_inner().task.unwrap();
    assert_eq!(lax.approval(), v1::ApprovalPolicy::Effects);
    state(&mut world.client, &lax.task_id, TaskState::InputRequired).await;
}

#[tokio::test]
async fn the_group_asks_the_user() {
    let script = Script {
        plan: Box::new(|trajectory| if steps(trajectory).is_empty() { "AskUser".into() } else { "Finish".into() }),
        params: Box::new(|trajectory| match steps(trajectory).first().and_then(|step| step.observation.clone()) {
            Some(said) => said,
            None => "Which office?".into(),
        }),
        ..Script::default()
    };
    let mut world = world(Group::start(script).await).await;
    // a task that may not ask has no such tool
    assert_eq!(end(&ask(&mut world.client, task("How far is the office?")).await).reason(), FinishReason::Failed);
    world.client.submit_task(v1::SubmitTaskRequest { may_ask: true, ..named("t", "How far is the office?") }).await.unwrap();
    let task = state(&mut world.client, "t", TaskState::InputRequired).await;
    assert_eq!(task.input_required.as_ref().map(|asked| (asked.kind(), asked.prompt.as_str())), Some((InputKind::Answer, "Which office?")));
    // paused and resumed while it asks: it asks still
    world.client.pause_task(pause("t")).await.unwrap();
    world.client.resume_task(resume("t")).await.unwrap();
    assert_eq!(listed(&mut world.client, TaskState::InputRequired).await, ["t"]);
    // paused while it asks: the answer is kept, and nothing goes on
    world.client.pause_task(pause("t")).await.unwrap();
    let answered = give(&mut world.client, "t", 1, Input::Answer("Lyon".into())).await.unwrap();
    assert_eq!((answered.state(), answered.input_required), (TaskState::Paused, None));
    assert!(give(&mut world.client, "t", 1, Input::Answer("Lyon".into())).await.is_ok(), "the same answer again");
    assert!(give(&mut world.client, "t", 1, Input::Answer("Nantes".into())).await.is_err());
    assert_eq!(listed(&mut world.client, TaskState::Paused).await, ["t"]);
    world.client.resume_task(resume("t")).await.unwrap();
    let events = watch(&mut world.client, "t", 0).await;
    let seen = observations(&events)[0];
    assert_eq!((seen.text.as_str(), seen.untrusted), ("Lyon", false));
    assert_eq!((end(&events).answer.as_str(), runs(&world)), ("Lyon", 0));
}

#[tokio::test]
async fn a_task_is_retried_from_a_step() {
    let artifact = agents_v1::NewArtifact {
        kind: "table".into(),
        media_type: "text/csv".into(),
        name: "rivers.csv".into(),
        text: "12 rivers".into(),
        data: vec![7; 1000],
    };
    let execute: Execute = Box::new(move |request| agents_v1::ExecuteResponse {
        observation: format!("seen by {}", request.task_id),
        artifacts: vec![artifact.clone()],
        ..Default::default()
    });
    let mut world = world(Group::start(Script { execute: Some(execute), ..looks_up_and_sends() }).await).await;
    let first = ask(&mut world.client, named("t", "Loire")).await;
    assert_eq!((end(&first).approved, runs(&world)), (true, 2));
    let retry = |from_step, new_task_id: &str| v1::RetryTaskRequest {
        task_id: "t".into(),
        from_step,
        new_task_id: new_task_id.into(),
        ..Default::default()
    };
    let second = world.client.retry_task(retry(2, "u")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(second.origin.as_ref().map(|origin| (origin.task_id.as_str(), origin.steps)), Some(("t", 1)));
    let events = watch(&mut world.client, "u", 0).await;
    assert_eq!(names(&events)[..5], ["submitted", "thought", "action", "observation", "started"]);
    let seen: Vec<_> = observations(&events).into_iter().map(|seen| seen.text.clone()).collect();
    assert_eq!(seen, ["seen by t", "seen by u"], "the shared step is not made anew");
    assert_eq!(runs(&world), 3);
    assert!(end(&events).approved);
    let task = get(&mut world.client, "u").await;
    assert_eq!((task.steps, task.completion_tokens), (3, 5 * 5), "what is shared cost this task nothing");
    // the same retry is the same task, another one is refused
    let same = world.client.retry_task(retry(2, "u")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(same.last_sequence, task.last_sequence);
    assert_eq!(world.client.retry_task(retry(1, "u")).await.unwrap_err().code(), Code::AlreadyExists);
    // from the beginning, and from where there is nothing
    assert!(
        end(&{
            world.client.retry_task(retry(0, "v")).await.unwrap();
            watch(&mut world.client, "v", 0).await
        })
        .approved
    );
    for (from, expected) in [(9, "NO_SUCH_STEP"), (4, "STEP_NOT_COMPLETE")] {
        let status = world.client.retry_task(retry(from, "")).await.unwrap_err();
        assert_eq!(reason(&status).as_deref(), Some(expected), "{from}");
    }
    // a retry of a retry, after the first task has gone with all its artifacts
    world.client.delete_task(v1::DeleteTaskRequest { task_id: "t".into() }).await.unwrap();
    // a request that is sent again finds what it made
    let same = world.client.retry_task(retry(2, "u")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(same.last_sequence, task.last_sequence);
    assert_eq!(world.client.retry_task(retry(1, "u")).await.unwrap_err().code(), Code::NotFound);
    let of_retry = v1::RetryTaskRequest { task_id: "u".into(), from_step: 2, new_task_id: "w".into(), ..Default::default() };
    world.client.retry_task(of_retry).await.unwrap();
    assert!(end(&watch(&mut world.client, "w", 0).await).approved);
    let copied = v1::GetArtifactRequest { task_id: "w".into(), name: "rivers.csv".into(), step: 1 };
    assert!(world.client.get_artifact(copied).await.is_ok());
}

/// A gateway that dies while it copies leaves a part of the history.
#[tokio::test]
async fn a_history_that_is_copied_in_part_is_completed_or_ends_the_task() {
    use autoact_bus::Bus;
    use autoact_trajectory::{Event, EventBody, Submitted, TaskKey, shared};
    let mut world = world(Group::start(looks_up_and_sends()).await).await;
    ask(&mut world.client, named("t", "Loire")).await;
    let settings = config(&world.nats, &world.group);
    let bus = Bus::connect(settings.service.bus.config(&world.nats.url(), "test")).await.unwrap();
    let key = |id: &str| TaskKey::new("default".parse().unwrap(), id.parse().unwrap());
    let events = bus.load(&key("t")).await.unwrap();
    let found = shared(&events, 3).unwrap();
    let EventBody::Submitted(submitted) = events[0].body.clone() else { unreachable!() };
    let begin = async |id: &str, origin: autoact_trajectory::Origin, copies: usize| {
        let first = EventBody::Submitted(Submitted { origin: Some(Box::new(origin)), ..submitted.clone() });
        let bodies = std::iter::once(first).chain(found.events.iter().take(copies).map(|event| event.body.clone()));
        let mut after = 0;
        for (body, index) in bodies.zip(1..) {
            let event = Event::new(&key(id), index, std::time::SystemTime::now(), "test", body);
            after = bus.append(&event, after).await.unwrap().sequence;
        }
        bus.enqueue(&key(id)).await.unwrap();
    };
    begin("u", found.origin.clone(), 4).await;
    let whole = watch(&mut world.client, "u", 0).await;
    assert_eq!(names(&whole)[1..8], ["thought", "action", "observation", "thought", "action", "observation", "started"]);
    assert!(end(&whole).approved);
    // another history than the one that was to be shared
    begin("v", autoact_trajectory::Origin { last: None, ..found.origin.clone() }, 1).await;
    let ended = watch(&mut world.client, "v", 0).await;
    assert_eq!(end(&ended).reason(), FinishReason::Failed);
}

#[tokio::test]
async fn a_deleted_task_is_gone_from_everywhere() {
    let mut world = world(Group::start(Script::default()).await).await;
    ask(&mut world.client, named("t", "Loire")).await;
    let remembered = async || world.group.inner.remembered.lock().unwrap().len();
    assert!(poll::until(LIMIT, async || (remembered().await == 1).then_some(())).await.is_some());
    let delete = |id: &str| v1::DeleteTaskRequest { task_id: id.into() };
    // memory has to forget it first
    *world.group.inner.memory.lock().unwrap() = MemoryIs::Away;
    let status = world.client.delete_task(delete("t")).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::Unavailable, Some("MEMORY_UNAVAILABLE")));
    assert!(get(&mut world.client, "t").await.approved);
    *world.group.inner.memory.lock().unwrap() = MemoryIs::There;
    world.client.delete_task(delete("t")).await.unwrap();
    assert_eq!(remembered().await, 0);
    let status = world.client.get_task(v1::GetTaskRequest { task_id: "t".into(), view: 0 }).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(world.client.delete_task(delete("t")).await.unwrap_err().code(), Code::NotFound);
    // one that has not ended stays
    world.group.hold_after(0);
    world.client.submit_task(named("u", "Loire")).await.unwrap();
    let status = world.client.delete_task(delete("u")).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::FailedPrecondition, Some("TASK_NOT_ENDED")));
}

#[tokio::test]
async fn a_task_that_goes_on_needs_a_place_as_a_new_one_does() {
    let script = Script {
        plan: Box::new(|trajectory| {
            let asks = trajectory.question == "Which?" && steps(trajectory).is_empty();
            if asks { "AskUser".into() } else { "Finish".into() }
        }),
        ..Script::default()
    };
    let mut world = world_with(Group::start(script).await, |config| config.max_tasks = 1).await;
    world.client.submit_task(v1::SubmitTaskRequest { may_ask: true, ..named("asks", "Which?") }).await.unwrap();
    let asked = state(&mut world.client, "asks", TaskState::InputRequired).await.input_required.unwrap();
    unqueued(&world).await;
    world.group.hold_after(0);
    world.client.submit_task(named("paused", "q")).await.unwrap();
    world.client.pause_task(pause("paused")).await.unwrap();
    unqueued(&world).await;
    // takes the only place
    world.client.submit_task(named("runs", "q")).await.unwrap();

    let full = |status: tonic::Status| {
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::ResourceExhausted, Some("GATEWAY_FULL")), "{status:?}");
        assert!(retry_after(&status).is_some());
    };
    full(world.client.resume_task(resume("paused")).await.unwrap_err());
    full(give(&mut world.client, "asks", asked.step, Input::Answer("this".into())).await.unwrap_err());
    // nothing was changed by that
    assert_eq!(get(&mut world.client, "paused").await.state(), TaskState::Paused);
    assert_eq!(get(&mut world.client, "asks").await.state(), TaskState::InputRequired);
    // what a pause holds back in any case needs no place
    world.client.pause_task(pause("asks")).await.unwrap();
    give(&mut world.client, "asks", asked.step, Input::Answer("this".into())).await.unwrap();

    world.group.go_on();
    for id in ["paused", "asks"] {
        let mut client = world.client.clone();
        assert!(poll::until(LIMIT, async || client.clone().resume_task(resume(id)).await.ok()).await.is_some());
        assert!(end(&watch(&mut client, id, 0).await).approved);
    }
    // what goes on already needs no second place
    assert!(world.client.resume_task(resume("asks")).await.is_ok());
}
