//! An MCP server over HTTP on a free port.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// A server whose tools all have one answer.
pub(crate) struct HttpServer {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl HttpServer {
    pub(crate) fn start(call: impl Fn(&Value) -> String + Send + Sync + 'static) -> HttpServer {
        HttpServer::whole(move |request, message| match message["method"].as_str() {
            Some("initialize") => json_answer(&message["id"], &initialized(message), "Mcp-Session-Id: s-1\r\n"),
            Some("tools/list") => json_answer(&message["id"], &list(), ""),
            Some("tools/call") => call(message),
            Some(_) => answer("202 Accepted", "", ""),
            None if request.starts_with("GET") => answer("405 Method Not Allowed", "", ""),
            None => answer("200 OK", "", ""),
        })
    }

    /// The function gets the request and its message, and returns the answer.
    pub(crate) fn whole(serve: impl Fn(&str, &Value) -> String + Send + Sync + 'static) -> HttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (kept, serve) = (Arc::clone(&requests), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, serve) = (Arc::clone(&kept), Arc::clone(&serve));
                std::thread::spawn(move || one(stream, &kept, &*serve));
            }
        });
        HttpServer { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// How many calls of tools came.
    pub(crate) fn calls(&self) -> usize {
        self.requests().iter().filter(|request| request.contains("\"tools/call\"")).count()
    }
}

fn one(mut stream: TcpStream, kept: &Mutex<Vec<String>>, serve: &dyn Fn(&str, &Value) -> String) {
    let Some((request, body)) = read(&mut stream) else { return };
    kept.lock().unwrap().push(request.clone());
    let message = serde_json::from_str(&body).unwrap_or_default();
    let _ = stream.write_all(serve(&request, &message).as_bytes());
}

fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some((text.clone(), body.to_owned()));
            }
        }
        match stream.read(&mut chunk).ok()? {
            0 => return None,
            read => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

pub(crate) fn json_answer(id: &Value, result: &Value, headers: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    answer("200 OK", &format!("content-type: application/json\r\n{headers}"), &body)
}

/// Messages as events, without an end that says so.
pub(crate) fn events(messages: &[Value]) -> String {
    let events: Vec<String> = messages.iter().map(|message| format!("event: message\r\ndata: {message}\r\n\r\n")).collect();
    answer("200 OK", "content-type: text/event-stream; charset=utf-8\r\n", &events.concat())
}

pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub(crate) fn initialized(message: &Value) -> Value {
    json!({
        "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
        "serverInfo": {"name": "http", "version": "1"},
    })
}

fn list() -> Value {
    let tool = |name: &str, read_only: bool| {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        json!({"name": name, "description": name, "inputSchema": schema, "annotations": {"readOnlyHint": read_only}})
    };
    json!({"tools": [tool("look", true), tool("change", false)]})
}
