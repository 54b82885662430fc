//! What the group is told beside the question, from the command line and for people.

use std::path::Path;

use anyhow::Context as _;
use autoact_wire::v1;
use serde::Deserialize;

use crate::args::ContextOptions;

/// A profile file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProfileFile {
    name: String,
    bio: String,
    audience: String,
    instructions: Vec<String>,
}

/// The message of what was given; `None` where nothing was. The gateway checks it.
///
/// # Errors
/// The profile file cannot be used.
pub(crate) fn message(options: &ContextOptions) -> anyhow::Result<Option<v1::TaskContext>> {
    let options = options.clone();
    let file = options.profile.as_deref().map(read).transpose()?;
    let (profile, mut instructions) = match file {
        Some(ProfileFile { name, bio, audience, instructions }) => (Some(v1::Profile { name, bio, audience }), instructions),
        None => (None, Vec::new()),
    };
    instructions.extend(options.instructions);
    let task = v1::TaskInfo {
        name: options.task_name.unwrap_or_default(),
        description: options.task_description.unwrap_or_default(),
        answer_format: options.answer_format.unwrap_or_default(),
    };
    let context = v1::TaskContext {
        task: (task != v1::TaskInfo::default()).then_some(task),
        profile,
        instructions,
        knowledge: options.knowledge,
        now: options.now,
        time_zone: options.time_zone.unwrap_or_default(),
    };
    Ok((context != v1::TaskContext::default()).then_some(context))
}

fn read(path: &Path) -> anyhow::Result<ProfileFile> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the profile `{}`", path.display()))?;
    toml::from_str(&text).with_context(|| format!("`{}` is no profile; expected `name`, `bio`, `audience`, `instructions`", path.display()))
}

/// What is set, a row each.
pub(crate) fn rows(context: &v1::TaskContext) -> Vec<(&'static str, String)> {
    let v1::TaskContext { task, profile, instructions, knowledge, now, time_zone } = context.clone();
    let task = task.unwrap_or_default();
    let profile = profile.unwrap_or_default();
    let mut rows = vec![
        ("task name", task.name),
        ("description", task.description),
        ("answer format", task.answer_format),
        ("profile", profile.name),
        ("bio", profile.bio),
        ("audience", profile.audience),
    ];
    rows.extend(instructions.into_iter().map(|instruction| ("instruction", instruction)));
    rows.push(("knowledge", knowledge.join(", ")));
    rows.push(("now", now.map(|now| now.to_string()).unwrap_or_default()));
    rows.push(("time zone", time_zone));
    rows.retain(|(_, value)| !value.is_empty());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_given_is_nothing_sent() {
        assert_eq!(message(&ContextOptions::default()).unwrap(), None);
    }

    #[test]
    fn a_profile_is_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("guide.toml");
        std::fs::write(&file, "name = \"Ada\"\naudience = \"children\"\ninstructions = [\"Be brief.\"]\n").unwrap();
        let mut options =
            ContextOptions { profile: Some(file.clone()), instructions: vec!["Name no numbers.".into()], ..ContextOptions::default() };
        options.task_name = Some("rivers".into());
        let sent = message(&options).unwrap().unwrap();
        assert_eq!(sent.instructions, ["Be brief.", "Name no numbers."]);
        assert_eq!(
            rows(&sent),
            [
                ("task name", "rivers"),
                ("profile", "Ada"),
                ("audience", "children"),
                ("instruction", "Be brief."),
                ("instruction", "Name no numbers.")
            ]
            .map(|(name, value)| (name, value.to_owned()))
        );
        std::fs::write(&file, "nmae = \"Ada\"\n").unwrap();
        assert!(message(&options).is_err());
        options.profile = Some(directory.path().join("nowhere.toml"));
        assert!(message(&options).is_err());
    }
}
