//! `autoact tools`: what the group can do and what it takes, and your own tools.

mod add;
mod call;
mod edit;
mod files;
mod library;
mod ready;

use autoact_wire::v1;
use serde_json::{Value, json};

use crate::args::{ToolsCommand, ToolsOptions};
use crate::client::{self, Service};
use crate::exit;
use crate::out;
use crate::text::plain_line;
use crate::tool_choice;

pub(crate) async fn run(gateway: &str, options: ToolsOptions) -> anyhow::Result<u8> {
    let json = options.json;
    match options.command {
        None | Some(ToolsCommand::List) => list(gateway, json).await,
        Some(ToolsCommand::Show { name }) => show(gateway, &name, json).await,
        Some(ToolsCommand::Choose { question }) => choose(gateway, question, json).await,
        Some(ToolsCommand::Call(options)) => call::run(&options, json).await,
        Some(ToolsCommand::Kinds) => ready::list(json),
        Some(ToolsCommand::Check(files)) => library::check(&files, json).await,
        Some(ToolsCommand::Add(command)) => add::add(gateway, *command).await,
        Some(ToolsCommand::Accept { name, files }) => add::accept(&name, &files).await,
        Some(ToolsCommand::Remove { name, files }) => add::remove(&name, &files),
    }
}

async fn tools(gateway: &str) -> anyhow::Result<Vec<v1::ToolSpec>> {
    let mut client = client::gateway(gateway)?;
    match client.list_tools(v1::ListToolsRequest {}).await {
        Ok(response) => Ok(response.into_inner().tools),
        Err(status) => Err(client::explain(status, Service::Gateway, gateway).await),
    }
}

async fn list(gateway: &str, json: bool) -> anyhow::Result<u8> {
    let tools = tools(gateway).await?;
    if json {
        out::line(Value::Array(tools.iter().map(object).collect()))?;
    } else {
        out::text(tools.iter().map(shown).collect::<String>())?;
    }
    Ok(exit::OK)
}

async fn show(gateway: &str, name: &str, json: bool) -> anyhow::Result<u8> {
    let tools = tools(gateway).await?;
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        anyhow::bail!("there is no tool `{}`; the group has `{}`", plain_line(name), known.join("`, `"));
    };
    if json {
        out::line(object(tool))?
    } else {
        out::text(shown(tool))?
    }
    Ok(exit::OK)
}

async fn choose(gateway: &str, question: String, json: bool) -> anyhow::Result<u8> {
    let mut client = client::gateway(gateway)?;
    let response = match client.choose_tools(v1::ChooseToolsRequest { question }).await {
        Ok(response) => response.into_inner(),
        Err(status) => return Err(client::explain(status, Service::Gateway, gateway).await),
    };
    let v1::ChooseToolsResponse { tools, tool_choice: choice } = response;
    if json {
        out::line(json!({ "tools": tools, "tool_choice": choice.as_ref().map(tool_choice::object) }))?;
        return Ok(exit::OK);
    }
    match &choice {
        None => out::note("the library is small: tasks that name no tools have all of them"),
        Some(choice) => {
            out::line(tool_choice::line(choice))?;
            if !choice.ranked.is_empty() {
                out::text(tool_choice::table(choice))?;
            }
        }
    }
    let names: Vec<String> = tools.iter().map(|name| plain_line(name)).collect();
    out::line(format_args!("tools of the task: {}", names.join(", ")))?;
    Ok(exit::OK)
}

/// A tool for programs. Fields may be added.
fn object(tool: &v1::ToolSpec) -> Value {
    // a schema of a later release may not be JSON: then its text says more than nothing
    let schema = match tool.schema.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    };
    json!({
        "name": tool.name,
        "definition": tool.definition,
        "usage": tool.usage,
        "schema": schema,
        "examples": tool.examples,
        "effect": effect(tool),
        "terminal": tool.terminal,
        "no_answer": tool.no_answer,
        "needs_approval": tool.needs_approval,
    })
}

/// A tool for people.
fn shown(tool: &v1::ToolSpec) -> String {
    let waits = if tool.needs_approval { ", waits for approval" } else { "" };
    let mut text = format!("{}  ({}{waits})\n    {}\n", plain_line(&tool.usage), effect(tool), plain_line(&tool.definition));
    if !tool.schema.is_empty() {
        text.push_str(&format!("    schema   {}\n", plain_line(&tool.schema)));
    }
    for example in &tool.examples {
        text.push_str(&format!("    example  {}\n", plain_line(example)));
    }
    text
}

fn effect(tool: &v1::ToolSpec) -> &'static str {
    match tool.effect() {
        v1::Effect::ReadOnly => "read_only",
        v1::Effect::Idempotent => "idempotent",
        v1::Effect::SideEffect => "side_effect",
        v1::Effect::Unspecified => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_shown_with_its_arguments() {
        let plain = v1::ToolSpec { usage: "Search[query]".into(), definition: "Finds.".into(), effect: 1, ..v1::ToolSpec::default() };
        assert_eq!(shown(&plain), "Search[query]  (read_only)\n    Finds.\n");
        assert_eq!(object(&plain)["schema"], Value::Null);
        let careful = v1::ToolSpec { needs_approval: true, ..plain.clone() };
        assert!(shown(&careful).contains("(read_only, waits for approval)"));
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
        let typed = v1::ToolSpec { schema: schema.into(), examples: vec![r#"{"n":3}"#.into()], ..plain };
        assert!(shown(&typed).ends_with(&format!("    schema   {schema}\n    example  {{\"n\":3}}\n")), "{}", shown(&typed));
        let object = object(&typed);
        assert_eq!((&object["schema"]["properties"]["n"]["type"], &object["examples"][0]), (&json!("integer"), &json!(r#"{"n":3}"#)));
    }
}
