//! Makes the seeds of the fuzz targets from the repository's own fixtures: `fuzz/corpus/<target>/`.
//!
//! `cargo run -p autoact-fuzz-entries --example seeds`. The same program makes the same bytes; what
//! it makes is committed.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a program of developers

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use autoact_trajectory::{
    Action, Claim, Digest, Effect, Event, EventBody, FinishReason, Finished, Limits, Observation, Outcome, ParameterSchema, Receipt,
    Reflection, ReleaseReason, Released, Started, Submitted, Task, TaskKey, Thought, ToolSpec, Verdict, decide,
};
use autoact_wire::receipt::{self, action_digest};
use autoact_wire::specs::stored_specs;
use autoact_wire::store::{IndexEntry, IndexRecord, PurgeReason, digest, encode};
use autoact_wire::{agents_v1, v1};
use prost::Message as _;

const BETWEEN: &[u8] = b"\x1e\x1e";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn seed(target: &str, name: &str, bytes: &[u8]) {
    let dir = root().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(name), bytes).unwrap();
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag], bytes].concat()
}

fn joined<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    parts.into_iter().collect::<Vec<_>>().join(BETWEEN)
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

fn key() -> TaskKey {
    TaskKey::new("default".parse().unwrap(), "t-1".to_owned().try_into().unwrap())
}

fn tool(name: &str, effect: Effect, schema: Option<&str>) -> ToolSpec {
    ToolSpec {
        definition: format!("{name} does something."),
        effect,
        schema: schema.map(|schema| ParameterSchema::parse(schema).unwrap()),
        ..ToolSpec::new(name)
    }
}

const TYPED: &str = r#"{"type":"object","properties":{"to":{"type":"string"},"copies":{"type":"integer","minimum":1}},"required":["to"]}"#;

fn submitted() -> Submitted {
    Submitted {
        question: "What is the capital of the country where the Loire flows?".to_owned(),
        tools: vec![
            tool("Retrieve", Effect::ReadOnly, None),
            tool("Send", Effect::SideEffect, Some(TYPED)),
            tool("Finish", Effect::ReadOnly, None),
        ],
        limits: Limits::default(),
        ..Submitted::default()
    }
}

/// A history of these events, as it is stored: its tools, then its events.
fn history(bodies: impl IntoIterator<Item = EventBody>) -> Vec<Vec<u8>> {
    let first = submitted();
    let mut parts: Vec<Vec<u8>> = stored_specs(&first).map(|(_, spec)| spec.bytes).collect();
    let mut event = Event::new(&key(), 1, at(0), "gateway-a", EventBody::Submitted(first));
    let mut task: Option<Task> = None;
    let mut bodies = bodies.into_iter();
    loop {
        let bytes = encode(&event).unwrap();
        event.digest = Some(digest(&bytes));
        event.sequence = event.index;
        match &mut task {
            None => task = Some(Task::begin(&event).unwrap()),
            Some(task) => task.apply(&event).unwrap(),
        }
        parts.push(bytes);
        let Some(body) = bodies.next() else { return parts };
        event = task.as_ref().unwrap().next_event(at(event.index), "gateway-a", body);
    }
}

fn started(attempt: u32) -> EventBody {
    EventBody::Started(Started { gateway: "gateway-a".to_owned(), attempt })
}

fn thought(tool: &str) -> EventBody {
    EventBody::Thought(Thought { thought: "I need the country of the Loire.".to_owned(), tool: tool.to_owned() })
}

fn action(tool: &str, params: &str) -> EventBody {
    EventBody::Action(Action { tool: tool.to_owned(), params: params.to_owned() })
}

fn seen(text: &str) -> EventBody {
    EventBody::Observation(Observation { text: text.to_owned(), ..Observation::default() })
}

fn events() {
    let released = EventBody::Released(Released { reason: ReleaseReason::Waiting, detail: "tool-agent".to_owned(), may_have_run: true });
    let finished = |approved, reason| {
        EventBody::Finished(Finished {
            answer: "Paris".to_owned(),
            approved,
            reason,
            detail: String::new(),
            citations: Vec::new(),
            open_effect: None,
            by: String::new(),
        })
    };
    let whole = history([
        started(1),
        thought("Retrieve"),
        action("Retrieve", "Loire"),
        seen("The Loire is a river in France. The capital of France is Paris."),
        thought("Finish"),
        action("Finish", "Paris"),
        EventBody::Reflection(Reflection::new("The page says so.", Verdict::Right)),
        finished(true, FinishReason::Approved),
    ]);
    seed("events", "whole", &joined(whole.iter().map(Vec::as_slice)));
    let taken = history([
        started(1),
        thought("Send"),
        action("Send", r#"{"to":"me","copies":1}"#),
        released,
        started(2),
        seen("sent"),
        thought("Finish"),
        action("Finish", "done"),
        EventBody::Reflection(Reflection::new("No.", Verdict::Wrong)),
        finished(false, FinishReason::Cancelled),
    ]);
    seed("events", "taken-over", &joined(taken.iter().map(Vec::as_slice)));
    // as the first version of the schema stored them, which named no tenant
    let first = v1::TrajectoryEvent::from(&Event::new(&key(), 1, at(0), "gateway-a", EventBody::Submitted(submitted())));
    seed("events", "version-1", &first.encode_to_vec());
}

fn records() {
    let action = action_digest(&Action { tool: "Send".to_owned(), params: "x".to_owned() });
    let claim = |epoch| Receipt::Claim(Claim { step: 1, epoch, action, until: at(9), claimant: "tool-agent-1".to_owned() });
    let observation = Observation { text: "sent".to_owned(), ..Observation::default() };
    let outcome = Receipt::Outcome { step: 1, outcome: Outcome { observation, artifacts: Vec::new() } };
    let receipts = [Receipt::Fence { epoch: 1 }, claim(1), Receipt::Fence { epoch: 2 }, claim(2), outcome];
    let stored: Vec<Vec<u8>> = receipts.iter().map(|receipt| receipt::encode(&key(), "tool-agent-1", at(1), receipt)).collect();
    seed("records", "receipts", &joined(stored.iter().map(Vec::as_slice)));
    let previous = Some(Digest([7; 32]));
    let entries =
        [IndexEntry::Submitted, IndexEntry::Ended { index: 9, hash: previous }, IndexEntry::Purged(PurgeReason::Age), IndexEntry::Lost];
    let index: Vec<Vec<u8>> = entries.into_iter().map(|entry| IndexRecord { task: key(), time: at(2), previous, entry }.encode()).collect();
    seed("records", "index", &joined(index.iter().map(Vec::as_slice)));
}

fn requests() {
    let spec = v1::ToolSpec::from(&tool("Send", Effect::SideEffect, Some(TYPED)));
    let submit = v1::SubmitTaskRequest {
        task_id: "t-1".to_owned(),
        question: "Where does the Loire end?".to_owned(),
        tools: vec!["Retrieve".to_owned()],
        limits: Some(Limits::default().into()),
        context: Some(v1::TaskContext { instructions: vec!["Be brief.".to_owned()], ..v1::TaskContext::default() }),
        ..v1::SubmitTaskRequest::default()
    };
    seed("requests", "submit", &tagged(0, &submit.encode_to_vec()));
    let parts = history([started(1), thought("Retrieve"), action("Retrieve", "Loire"), seen("The Loire is a river. It is long.")]);
    let specs: std::collections::BTreeMap<_, _> = stored_specs(&submitted()).map(|(spec, stored)| (stored.digest, spec.clone())).collect();
    let events: Vec<Event> =
        (1..).zip(&parts[3..]).map(|(at, bytes)| autoact_wire::store::decode(&key().tenant, bytes, at, &specs).unwrap()).collect();
    let task = Task::fold(&events).unwrap();
    let _ = decide(&task, at(1));
    seed("requests", "history", &tagged(1, &v1::Trajectory::from(task.trajectory()).encode_to_vec()));
    seed("requests", "tool", &tagged(2, &spec.encode_to_vec()));
    let calibration = agents_v1::Calibration {
        terms: vec![agents_v1::Term { weight: 0.5, ..agents_v1::Term::default() }],
        ..agents_v1::Calibration::default()
    };
    seed("requests", "calibration", &tagged(3, &calibration.encode_to_vec()));
    seed("requests", "watch", &tagged(4, &v1::WatchTaskRequest { task_id: "t-1".to_owned(), ..Default::default() }.encode_to_vec()));
}

fn replies() {
    seed("replies", "plan", b" I need the country.\nAction: Retrieve\n");
    seed("replies", "input", b" Loire\n");
    seed("replies", "arguments", b" {\"b\": [\"x\", \"y\"],\n \"a\": 1 }\n");
    seed("replies", "judgement", " The page says so: 東京.\nVerdict: right\n".as_bytes());
}

/// The models' fixtures, without their large weights.
fn models() {
    let fixtures = "tests/golden/fixtures";
    for model in ["llama2", "qwen2"] {
        let file = |name: &str| read(&format!("{fixtures}/{model}/{name}"));
        let files = [file("config.json"), file("tokenizer.json"), file("tokenizer_config.json"), file("generation_config.json")];
        seed("model", model, &joined(files.iter().map(Vec::as_slice)));
        let config = file("adapter/adapter_config.json");
        let weights = file("adapter/adapter_model.safetensors");
        seed("adapter", model, &joined([config.as_slice(), weights.as_slice()]));
    }
    seed("weights", "adapter", &read(&format!("{fixtures}/llama2/adapter/adapter_model.safetensors")));
    let header = br#"{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]}}"#;
    let length = u64::try_from(header.len()).unwrap().to_le_bytes();
    seed("weights", "two", &[length.as_slice(), header, &[0; 12]].concat());
}

fn documents() {
    seed("documents", "page.html", &tagged(1, b"<!doctype html><meta charset=utf-8><title>Loire</title><main><h1>Loire</h1><p>The <b>Loire</b> is a river.<table><tr><th>km<td>1006</table><ul><li>a<li>b</ul></main>"));
    seed(
        "documents",
        "notes.md",
        &tagged(
            2,
            b"# Loire\n\nThe *Loire* is a river[^1].\n\n| km | mouth |\n|---|---|\n| 1006 | Atlantic |\n\n- a\n  - b\n\n[^1]: In France.\n",
        ),
    );
    seed("documents", "plain.txt", &tagged(3, "LOIRE\n=====\n\nThe Loire is a river.\n\n2. Length\n\n1,006 km — long.\n".as_bytes()));
    seed("documents", "latin.html", &tagged(1, b"<meta charset=iso-8859-1><p>Orl\xe9ans &amp; Nantes&#x2014;"));
    seed("documents", "page.pdf", &tagged(0, &pdf()));
}

/// A PDF of one page.
fn pdf() -> Vec<u8> {
    let content = "BT /F 12 Tf 72 720 Td (The Loire is a river.) Tj 0 -14 Td [(It is ) -250 (long.)] TJ ET";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [4 0 R] /Count 1 /Resources << /Font << /F 3 0 R >> >> >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    let mut text = "%PDF-1.7\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (number, object) in (1..).zip(&objects) {
        table += &format!("{:010} 00000 n \n", text.len());
        text += &format!("{number} 0 obj\n{object}\nendobj\n");
    }
    let start = text.len();
    format!("{text}{table}trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1).into_bytes()
}

fn tools() {
    // the order of the library in `src/tools.rs`: the bundled tools, then the ready-made ones
    for (place, name, params) in [
        (0, "search", "rivers of France"),
        (1, "retrieve", "Loire"),
        (2, "lookup", "long"),
        (3, "calculate", "(1,006 km + 3 * 2) / 4 > 200"),
        (6, "delta", r#"{"start_time":"1987-06-24","end_time":"1988-02-26"}"#),
        (7, "calendar", r#"{"date":"2024-02-10"}"#),
        (8, "terms", r#"{"year":2024}"#),
        (9, "holidays", r#"{"date":"2024-10-01"}"#),
        (10, "sun", r#"{"latitude":47.2,"longitude":-1.55,"date":"2024-06-21"}"#),
        (11, "verbalize", r#"{"table":"name,km\nLoire,1006"}"#),
        (12, "query", r#"{"sql":"SELECT name FROM river WHERE length > 1000"}"#),
        (13, "graph", r#"{"entity":"Loire","relation":"mouth"}"#),
    ] {
        seed("arguments", name, &tagged(place, params.as_bytes()));
    }
    let schema = br#"{"type":"object","properties":{"a":{"type":"integer","minimum":0},"b":{"type":"array","items":{"enum":["x","y"]}},"c":{"anyOf":[{"type":"string","pattern":"^a+$"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}"#;
    seed("arguments", "typed", &joined([schema.as_slice(), br#" {"b":["x"],"a":1,"c":"aa"}"#]));
    seed("openapi", "three.json", br##"{"openapi":"3.1.0","info":{"title":"Rivers","version":"1"},"servers":[{"url":"https://{where}.example.com/v1","variables":{"where":{"default":"api"}}}],"paths":{"/rivers/{id}":{"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}],"get":{"operationId":"getRiver","summary":"One river","parameters":[{"name":"fields","in":"query","style":"form","explode":false,"schema":{"type":"array","items":{"$ref":"#/components/schemas/Field"}}}],"responses":{"200":{"description":"it"}},"security":[{"key":[]}]},"post":{"operationId":"setRiver","requestBody":{"content":{"application/json":{"schema":{"allOf":[{"$ref":"#/components/schemas/River"},{"type":"object","properties":{"note":{"type":["string","null"]}}}]}}}},"responses":{}}}},"components":{"securitySchemes":{"key":{"type":"apiKey","in":"header","name":"X-Key"}},"schemas":{"Field":{"type":"string","enum":["name","length"]},"River":{"type":"object","required":["name"],"properties":{"name":{"type":"string","maxLength":40},"into":{"$ref":"#/components/schemas/River"}}}}}}"##);
    seed("openapi", "two.yaml", b"swagger: '2.0'\ninfo: {title: Rivers, version: 1}\nhost: api.example.com\nschemes: [https]\npaths:\n  /find:\n    get:\n      parameters:\n        - {name: q, in: query, type: string, required: true}\n        - {name: tags, in: query, type: array, items: {type: string}, collectionFormat: pipes}\n      responses: {}\n");
    seed("tables", "rivers.csv", &tagged(0, b"name,length,\"mouth, or sea\"\nLoire,1006,\"Atlantic \"\"Ocean\"\"\"\nNile,6650,\n\x1e\x1e{name} is {length} km long[ and ends in {mouth, or sea}]."));
    seed("tables", "rivers.tsv", &tagged(1, b"name\tlength\nLoire\t1006\nNile\n"));
    seed("tables", "bars", &tagged(2, b"| name | km |\n|---|---|\n| Loire | 1006 |\n"));
    seed("tables", "rows.json", &tagged(2, br#"[{"name":"Loire","km":1006},{"name":"Nile","km":null}]"#));
}

fn network() {
    let page = b"<title>Loire</title><main><p>The Loire is 1,006 km long.<a href=/b>more</a></main>";
    seed("http", "page", &tagged(1, page));
    seed("http", "text", &tagged(2, b"\xff\xfeT\0h\0e\0 \0L\0o\0i\0r\0e\0"));
    seed(
        "http",
        "wire",
        &tagged(
            0,
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ),
    );
    seed("http", "moved", &tagged(3, b"HTTP/1.1 302 Found\r\nlocation: //example.com/%zz?q#f\r\ncontent-length: 0\r\n\r\n"));
    seed("http", "busy", &tagged(3, b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 120\r\ncontent-length: 4\r\n\r\nbusy"));
    let hello = br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"rivers","version":"1"}}}"#;
    let list = br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"find","description":"Finds a river","inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]},"annotations":{"readOnlyHint":true}}]}}"#;
    let accepted = b"?HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    seed("mcp", "json", &joined([hello.as_slice(), accepted, list]));
    let events = |message: &[u8]| [b"!event: message\nid: 1\ndata: ", message, b"\n\n"].concat();
    seed("mcp", "events", &joined([events(hello).as_slice(), accepted, &events(list)]));
    seed("mcp", "refused", br#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no such method"}}"#);
    let chunk = br#"data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":" I"},"text":" I","logprobs":{"content":[{"token":" I","logprob":-0.1,"top_logprobs":[]}]},"finish_reason":null}]}

"#;
    let last = br#"data: {"choices":[{"index":0,"delta":{},"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}

data: [DONE]

"#;
    for (name, tag) in [("stream", 0), ("stream-with-grammar", 0x30)] {
        seed("model_server", name, &tagged(tag, &[chunk.as_slice(), last].concat()));
    }
    seed("model_server", "whole", &tagged(1, br#"{"choices":[{"index":0,"message":{"role":"assistant","content":" So."},"text":" So.","finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#));
    seed("model_server", "error", &tagged(2, b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 52\r\n\r\n{\"error\":{\"message\":\"unknown field logprobs\",\"code\":1}}"));
}

fn tokens() {
    let file = "[[token]]\nname = \"ann\"\ntenant = \"ops\"\nroles = [\"ask\", \"operate\"]\nsha256 = \"".to_owned()
        + &"0a".repeat(32)
        + "\"\nexpires = \"2126-12-23T17:00:00Z\"\n";
    seed("tokens", "file", &tagged(0, file.as_bytes()));
    // {"alg":"EdDSA","kid":"ours"}, {"iss":"https://id.example"}, and no signature of anybody
    let header = "eyJhbGciOiJFZERTQSIsImtpZCI6Im91cnMifQ";
    seed("tokens", "unsigned", &tagged(1, format!("{header}.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUifQ.AAAA").as_bytes()));
    // {"alg":"none"}
    seed("tokens", "none", &tagged(1, b"eyJhbGciOiJub25lIn0.e30."));
    let claims = r#"{"iss":"https://id.example","aud":["other","autoact"],"sub":"ann","exp":4102444800,"nbf":1700000000,"tenant":"ops","realm":{"roles":["ask"]}}"#;
    seed("tokens", "claims", &tagged(2, claims.as_bytes()));
    let keys = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","kid":"ec"},{"kty":"RSA","n":"AQAB","e":"AQAB","use":"sig","alg":"RS256"}]}"#;
    seed("tokens", "keys", &tagged(3, keys.as_bytes()));
}

fn main() {
    events();
    records();
    requests();
    replies();
    models();
    documents();
    tools();
    network();
    tokens();
}
