//! What models write: read as a thought, as parameters, as a judgement.

use autoact_prompt::{parse_input, parse_plan, parse_reflection};

/// A reply. Only constrained decoding keeps it to its form, and a remote server need not.
pub fn replies(data: &[u8]) {
    let reply = String::from_utf8_lossy(data);
    let _ = (parse_plan(&reply), parse_input(&reply), parse_reflection(&reply));
    #[cfg(feature = "engine")]
    read(&reply);
}

#[cfg(feature = "engine")]
fn read(reply: &str) {
    use std::sync::LazyLock;

    use autoact_speaker::{params, thought};
    use autoact_trajectory::{ParameterSchema, ToolSpec};

    /// One tool that takes a line, and one that takes typed arguments.
    static TOOLS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
        let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"string"}}}}"#;
        let tool = |name: &str, schema: Option<&str>| ToolSpec {
            schema: schema.and_then(|schema| ParameterSchema::parse(schema).ok()),
            ..ToolSpec::new(name)
        };
        vec![tool("Retrieve", None), tool("Send", Some(schema))]
    });
    let _ = thought(reply, &TOOLS);
    for tool in TOOLS.iter().map(Some).chain([None]) {
        if let Ok(written) = params(reply, tool) {
            // what is stored is read again at every replay
            assert!(params(&written, tool).is_ok_and(|again| again == written), "`{written}` changes when it is read again");
        }
    }
}
