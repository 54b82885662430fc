//! What a client says beside the question, as a message of the API and as it is stored: one
//! conversion, written out for both packages.

use std::time::SystemTime;

use autoact_trajectory::{InvalidContext, Profile, TaskContext, TaskInfo, TimeZone};

use crate::{store_v2, v1};

macro_rules! context {
    ($package:ident, $to_message:ident) => {
        /// The message of a context; `None` where nothing is set.
        pub(crate) fn $to_message(context: &TaskContext) -> Option<$package::TaskContext> {
            if context.is_empty() {
                return None;
            }
            let TaskContext { task, profile, instructions, knowledge, now, time_zone } = context;
            Some($package::TaskContext {
                task: (*task != TaskInfo::default()).then(|| $package::TaskInfo {
                    name: task.name.clone(),
                    description: task.description.clone(),
                    answer_format: task.answer_format.clone(),
                }),
                profile: (*profile != Profile::default()).then(|| $package::Profile {
                    name: profile.name.clone(),
                    bio: profile.bio.clone(),
                    audience: profile.audience.clone(),
                }),
                instructions: instructions.clone(),
                knowledge: knowledge.clone(),
                now: now.map(Into::into),
                time_zone: time_zone.as_ref().map(ToString::to_string).unwrap_or_default(),
            })
        }

        /// Forms are checked here, bounds are not: [`TaskContext::check`] knows them.
        impl TryFrom<$package::TaskContext> for TaskContext {
            type Error = InvalidContext;

            fn try_from(context: $package::TaskContext) -> Result<Self, Self::Error> {
                let $package::TaskContext { task, profile, instructions, knowledge, now, time_zone } = context;
                let $package::TaskInfo { name, description, answer_format } = task.unwrap_or_default();
                let task = TaskInfo { name, description, answer_format };
                let $package::Profile { name, bio, audience } = profile.unwrap_or_default();
                let profile = Profile { name, bio, audience };
                let now = now.map(|now| SystemTime::try_from(now).map_err(|_| InvalidContext::Now)).transpose()?;
                let time_zone = if time_zone.is_empty() { None } else { Some(time_zone.parse()?) };
                Ok(TaskContext { task, profile, instructions, knowledge, now, time_zone })
            }
        }
    };
}

context!(v1, context_to_proto);
context!(store_v2, stored_context);

/// A stored context. What this program cannot read of it is as if it were not set: a task goes on
/// without it.
pub(crate) fn context_from_store(mut context: store_v2::TaskContext) -> TaskContext {
    if context.time_zone.parse::<TimeZone>().is_err() {
        context.time_zone.clear();
    }
    context.now = context.now.filter(|now| SystemTime::try_from(*now).is_ok());
    TaskContext::try_from(context).unwrap_or_default()
}
