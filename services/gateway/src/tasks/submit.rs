//! Accepting a task: checks the request, stores its first event and queues it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, UNIX_EPOCH};

use autoact_access::{Principal, Role};
use autoact_bus::BusError;
use autoact_planning::check_fixed_parts;
use autoact_trajectory::{
    ASK_USER, ApprovalPolicy, Digest, Event, EventBody, Limits, NextAttempt, Profile, Sampling, Submitted, Task, TaskContext, TaskId,
    TaskInfo, TaskKey, TimeZone, Timing, ToolSpec, Trajectory,
};
use autoact_wire::store::digest;

use crate::agents::catalog::Selected;
use crate::run::log::append;
use crate::tasks::{Application, SubmitError, key, name};

/// A question is a paragraph, not a book: the model reads it at every step.
pub(crate) const MAX_QUESTION_BYTES: usize = 16 * 1024;
/// More tools than a model can tell apart.
pub(crate) const MAX_TOOLS: usize = 64;
/// Labels are for looking tasks up, not for data.
pub(crate) const MAX_LABELS: usize = 32;
/// Of a label's name and of its value.
pub(crate) const MAX_LABEL_BYTES: usize = 256;
/// How long agents may take to say whether a task's fixed parts fit. The task is accepted where
/// they do not say.
const ROOM_LIMIT: Duration = Duration::from_secs(2);
/// Like a task's id.
pub(crate) const MAX_CONVERSATION_BYTES: usize = 64;

/// A task as a client asks for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Submission {
    /// The client's own id; `None`: one is made.
    pub(crate) id: Option<TaskId>,
    pub(crate) question: String,
    /// Names from the tool library; none: all of them.
    pub(crate) tools: Vec<String>,
    /// Every bound with its value.
    pub(crate) limits: Limits,
    pub(crate) sampling: Sampling,
    pub(crate) labels: BTreeMap<String, String>,
    /// Empty: none.
    pub(crate) conversation: String,
    /// What the client says beside the question.
    pub(crate) context: TaskContext,
    /// The answer may have several lines.
    pub(crate) multiline_answer: bool,
    /// The confidence that an approval needs; `None`: what the adapters' calibration says.
    pub(crate) min_confidence: Option<f64>,
    /// Which actions wait for a person's approval, beyond what the tenant's policy asks for.
    pub(crate) approval: ApprovalPolicy,
    /// The group may ask the user.
    pub(crate) may_ask: bool,
    /// What the agents are given after a judgement "wrong"; `None`: what the
    /// adapters' calibration says.
    pub(crate) next_attempt: Option<NextAttempt>,
    /// The trace that the request came in; empty: none. It is no part of what is asked for.
    pub(crate) trace_id: String,
}

impl Submission {
    /// SHA-256 over all that makes the request: two requests with the same digest ask for the same
    /// task.
    fn digest(&self) -> Digest {
        let Submission {
            id: _,
            question,
            tools,
            limits,
            sampling,
            labels,
            conversation,
            context,
            multiline_answer,
            min_confidence,
            approval,
            may_ask,
            next_attempt,
            trace_id: _,
        } = self;
        let mut bytes = Vec::with_capacity(256 + question.len());
        let mut field = |value: &[u8]| add(&mut bytes, value);
        field(question.as_bytes());
        field(&(tools.len() as u64).to_le_bytes());
        tools.iter().for_each(|tool| field(tool.as_bytes()));
        for number in [limits.max_steps, limits.max_reflections, limits.max_tokens, sampling.temperature.to_bits(), sampling.top_k] {
            field(&number.to_le_bytes());
        }
        field(&limits.max_time.as_nanos().to_le_bytes());
        field(&sampling.top_p.to_bits().to_le_bytes());
        field(&sampling.seed.to_le_bytes());
        for (name, value) in labels {
            field(name.as_bytes());
            field(value.as_bytes());
        }
        field(conversation.as_bytes());
        let asked = digest(&bytes);
        // a request without a context has the digest that it had before there were any
        let asked = if context.is_empty() { asked } else { context_digest(asked, context) };
        // likewise a request for a plain answer
        let asked = if *multiline_answer { digest(&[asked.as_bytes(), b"multiline_answer".as_slice()].concat()) } else { asked };
        let asked = match min_confidence {
            Some(least) => digest(&[asked.as_bytes(), b"min_confidence".as_slice(), &least.to_bits().to_le_bytes()].concat()),
            None => asked,
        };
        let asked = match approval {
            ApprovalPolicy::Tools => asked,
            policy => digest(&[asked.as_bytes(), b"approval".as_slice(), policy.as_str().as_bytes()].concat()),
        };
        let asked = if *may_ask { digest(&[asked.as_bytes(), b"may_ask".as_slice()].concat()) } else { asked };
        match next_attempt {
            Some(next) => digest(&[asked.as_bytes(), b"next_attempt".as_slice(), next.as_str().as_bytes()].concat()),
            None => asked,
        }
    }
}

/// Appends a value with its length before it, so that no two lists of values have the same bytes.
fn add(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.extend((value.len() as u64).to_le_bytes());
    bytes.extend(value);
}

/// SHA-256 over the digest of the rest of a request and its context.
fn context_digest(asked: Digest, context: &TaskContext) -> Digest {
    let TaskContext { task, profile, instructions, knowledge, now, time_zone } = context;
    let TaskInfo { name, description, answer_format } = task;
    let Profile { name: speaker, bio, audience } = profile;
    let mut bytes = Vec::new();
    add(&mut bytes, asked.as_bytes());
    for text in [name, description, answer_format, speaker, bio, audience] {
        add(&mut bytes, text.as_bytes());
    }
    for list in [instructions, knowledge] {
        add(&mut bytes, &(list.len() as u64).to_le_bytes());
        list.iter().for_each(|entry| add(&mut bytes, entry.as_bytes()));
    }
    // seconds and nanoseconds, before or after 1970
    let now = now.map(|now| match now.duration_since(UNIX_EPOCH) {
        Ok(after) => (b'+', after.as_nanos()),
        Err(error) => (b'-', error.duration().as_nanos()),
    });
    add(&mut bytes, &now.map(|(sign, nanos)| [&[sign], nanos.to_le_bytes().as_slice()].concat()).unwrap_or_default());
    add(&mut bytes, time_zone.as_ref().map_or("", TimeZone::as_str).as_bytes());
    digest(&bytes)
}

impl Application {
    /// Stores and queues a task that came in at `received`, or finds that it is there already.
    pub(crate) async fn submit(&self, who: &Principal, submission: Submission, received: Instant) -> Result<Task, SubmitError> {
        who.require(Role::Ask)?;
        self.check(&submission)?;
        let request = submission.digest();
        if let Some(id) = &submission.id
            && let Some(task) = self.existing(&key(who, id), request, &submission.question).await?
        {
            return Ok(task);
        }
        // what is there already is no new task
        self.new_task(who, received)?;
        self.check_knowledge(&who.tenant, &submission.context.knowledge).await?;
        let mut selected = self.catalog.select(&submission.tools, &submission.question).await?;
        if submission.may_ask && !selected.tools.iter().any(|tool| tool.name == ASK_USER) {
            selected.tools.insert(0, ToolSpec::ask_user());
        }
        if submission.multiline_answer {
            selected.tools = selected.tools.into_iter().map(ToolSpec::with_multiline_answer).collect();
        }
        let id = submission.id.clone().unwrap_or_else(TaskId::generate);
        let key = key(who, &id);
        let Selected { tools, choice: tool_choice } = self.with_room(&key, &submission, selected).await?;
        let _entering = self.admit_new(who, &key).await?;
        let approval = submission.approval.max(self.approvals.of(&who.tenant));
        let Submission { question, limits, sampling, labels, conversation, context, trace_id, min_confidence, next_attempt, .. } =
            submission;
        let submitted = Submitted {
            question,
            tools,
            tool_choice,
            limits,
            sampling,
            labels,
            conversation,
            request: Some(request),
            context: Box::new(context),
            trace_id,
            min_confidence,
            next_attempt,
            approval,
            origin: None,
            by: name(who),
        };
        self.accept(&key, submitted, received).await
    }

    /// Stores the first event of a task, and queues it. The same request under the same id is the
    /// task that is there.
    pub(super) async fn accept(&self, key: &TaskKey, submitted: Submitted, received: Instant) -> Result<Task, SubmitError> {
        let (question, request) = (submitted.question.clone(), submitted.request);
        // first of all: a task that is stored and in no index would never be found by those who
        // look for unqueued ones
        self.bus.record_submission(key).await?;
        let mut event = Event {
            timing: Some(Timing { own: received.elapsed(), ..Timing::default() }),
            ..Event::new(key, 1, self.bus.now(), self.writer.clone(), EventBody::Submitted(submitted))
        };
        match append(&self.bus, &event, 0).await {
            Ok(stored) => (event.sequence, event.digest) = (stored.sequence, stored.digest),
            // somebody submitted the same id just now
            Err(conflict @ BusError::Conflict { .. }) => {
                let existing = match request {
                    Some(request) => self.existing(key, request, &question).await?,
                    None => None,
                };
                return existing.ok_or(SubmitError::Bus(conflict));
            }
            Err(error) => return Err(error.into()),
        };
        self.queue(key).await?;
        metrics::counter!("autoact_tasks_submitted_total").increment(1);
        Task::begin(&event).map_err(|source| SubmitError::Fold { task: key.id.clone(), source: Box::new(source) })
    }

    /// Counts a new task against the tenant's rate.
    pub(super) fn new_task(&self, who: &Principal, received: Instant) -> Result<(), SubmitError> {
        self.quotas.new_task(&who.tenant, received).map_err(|(after, most)| {
            metrics::counter!("autoact_tasks_refused_total").increment(1);
            SubmitError::Rate { most, after }
        })
    }

    /// The task of this id, if there is one. Queued again in case the one who stored it came no
    /// further; that changes nothing otherwise.
    pub(super) async fn existing(&self, key: &TaskKey, request: Digest, question: &str) -> Result<Option<Task>, SubmitError> {
        let events = self.bus.load(key).await?;
        if events.is_empty() {
            return Ok(None);
        }
        let task = Task::fold(&events).map_err(|source| SubmitError::Fold { task: key.id.clone(), source: Box::new(source) })?;
        // before schema version 2 the question alone was compared
        let same = task.request().map_or(task.trajectory().question == question, |known| known == request);
        if !same {
            return Err(SubmitError::Exists(key.id.clone()));
        }
        if task.finished().is_none() && !task.is_held() {
            self.queue(key).await?;
        }
        Ok(Some(task))
    }

    async fn queue(&self, key: &TaskKey) -> Result<(), SubmitError> {
        self.tenants.add(&[key.tenant.clone()].into());
        let queued = self.bus.enqueue(key).await;
        queued.map(|_| ()).map_err(|source| SubmitError::NotQueued { task: key.id.clone(), source: Box::new(source) })
    }

    /// The tools, if a prompt with them and the question leaves room for a reply. Those that were
    /// chosen give way, the one that fits least first.
    async fn with_room(&self, key: &TaskKey, submission: &Submission, mut selected: Selected) -> Result<Selected, SubmitError> {
        let Submission { question, context, .. } = submission;
        let mut trajectory = Trajectory { question: question.clone(), context: context.clone(), ..Trajectory::default() };
        loop {
            trajectory.tools = std::mem::take(&mut selected.tools);
            let checked = check_fixed_parts(self.contexts.as_ref(), key, &trajectory, ROOM_LIMIT).await;
            selected.tools = std::mem::take(&mut trajectory.tools);
            match checked {
                Ok(()) => return Ok(selected),
                Err(_) if selected.drop_least() => {}
                Err(size) => return Err(SubmitError::NoRoom(size)),
            }
        }
    }

    fn check(&self, submission: &Submission) -> Result<(), SubmitError> {
        let Submission { question, tools, limits, sampling, labels, conversation, context, min_confidence, .. } = submission;
        check_question(question)?;
        if tools.len() > MAX_TOOLS {
            return Err(SubmitError::ManyTools(tools.len()));
        }
        if labels.len() > MAX_LABELS {
            return Err(SubmitError::ManyLabels(labels.len()));
        }
        if labels.contains_key("") {
            return Err(SubmitError::LabelName);
        }
        if let Some(longest) =
            labels.iter().flat_map(|(name, value)| [name.len(), value.len()]).max().filter(|most| *most > MAX_LABEL_BYTES)
        {
            return Err(SubmitError::LongLabel(longest));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if conversation.len() > MAX_CONVERSATION_BYTES || !conversation.bytes().all(allowed) {
            return Err(SubmitError::Conversation(conversation.chars().take(MAX_CONVERSATION_BYTES + 1).collect()));
        }
        if let Some(least) = min_confidence.filter(|least| !(0.0..=1.0).contains(least)) {
            return Err(SubmitError::MinConfidence(least));
        }
        sampling.checked()?;
        context.check()?;
        self.check_limits(limits)
    }

    pub(super) fn check_limits(&self, asked: &Limits) -> Result<(), SubmitError> {
        let most = &self.max_limits;
        let numbers = [
            ("limits.max_steps", asked.max_steps, most.max_steps),
            ("limits.max_reflections", asked.max_reflections, most.max_reflections),
            ("limits.max_tokens", asked.max_tokens, most.max_tokens),
        ];
        for (field, asked, most) in numbers {
            if asked > most {
                return Err(SubmitError::Limit { field, asked: asked.to_string(), most: most.to_string() });
            }
        }
        if asked.max_time > most.max_time {
            let (asked, most) = (format!("{:?}", asked.max_time), format!("{:?}", most.max_time));
            return Err(SubmitError::Limit { field: "limits.max_time", asked, most });
        }
        Ok(())
    }
}

/// What a question has to be.
pub(crate) fn check_question(question: &str) -> Result<(), SubmitError> {
    if question.trim().is_empty() {
        return Err(SubmitError::NoQuestion);
    }
    if question.len() > MAX_QUESTION_BYTES {
        return Err(SubmitError::LongQuestion(question.len()));
    }
    Ok(())
}
