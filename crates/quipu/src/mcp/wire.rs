//! The message format of MCP: requests, results, errors, and the differences between the handshake
//! and the stateless revisions.

use serde_json::{Map, Value, json};

/// Supported handshake revisions, newest first.
pub const HANDSHAKES: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision without a handshake.
pub const STATELESS: &str = "2026-07-28";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The error of a request.
#[derive(Debug)]
pub struct Fault {
    pub code: i64,
    pub message: String,
    pub data: Option<Box<Value>>,
}

impl Fault {
    pub const PARSE: i64 = -32700;
    pub const REQUEST: i64 = -32600;
    pub const METHOD: i64 = -32601;
    pub const PARAMS: i64 = -32602;
    /// Unknown resource (handshake revisions; the stateless revision has no code of its own for
    /// it).
    pub const RESOURCE: i64 = -32002;
    /// Unsupported revision (stateless).
    pub const VERSION: i64 = -32022;
    /// A header contradicts the message (stateless, over HTTP).
    pub const HEADER: i64 = -32020;

    pub fn new(code: i64, message: impl Into<String>) -> Fault {
        Fault {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub fn unknown_method(method: &str) -> Fault {
        Fault::new(Fault::METHOD, format!("there is no method `{method}`"))
    }

    /// The error for an unsupported revision.
    pub fn unspoken(revision: &str) -> Fault {
        let data = json!({"supported": [STATELESS], "requested": revision});
        Fault {
            data: Some(Box::new(data)),
            ..Fault::new(
                Fault::VERSION,
                format!("revision {revision} is not supported"),
            )
        }
    }
}

/// A request or a notification.
#[derive(Debug)]
pub struct Request {
    /// `None` for a notification, which is not answered.
    pub id: Option<Value>,
    pub method: String,
    pub params: Map<String, Value>,
}

impl Request {
    pub fn parse(line: &str) -> Result<Request, Box<(Value, Fault)>> {
        let value: Value = serde_json::from_str(line)
            .map_err(|e| Box::new((Value::Null, Fault::new(Fault::PARSE, e.to_string()))))?;
        let id = value.get("id").cloned();
        let shown = id
            .clone()
            .filter(|id| id.is_string() || id.is_number())
            .unwrap_or(Value::Null);
        let bad = |what: &str| Box::new((shown.clone(), Fault::new(Fault::REQUEST, what)));
        if value.get("jsonrpc") != Some(&json!("2.0")) {
            return Err(bad("not a JSON-RPC 2.0 message"));
        }
        let method = value
            .get("method")
            .and_then(Value::as_str)
            .ok_or_else(|| bad("`method` is missing"))?
            .to_owned();
        let params = match value.get("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params.clone(),
            Some(_) => {
                return Err(Box::new((
                    shown,
                    Fault::new(Fault::PARAMS, "`params` is not an object"),
                )));
            }
        };
        Ok(Request { id, method, params })
    }

    fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    /// Returns the revision that the request itself names.
    pub fn revision(&self) -> Option<&str> {
        self.meta(VERSION_KEY)?.as_str()
    }

    /// Checks the fields that every stateless request must have, over any transport.
    pub fn is_complete(&self) -> Result<(), Fault> {
        let missing = [VERSION_KEY, CAPABILITIES_KEY]
            .into_iter()
            .find(|key| self.meta(key).is_none());
        missing.map_or(Ok(()), |key| {
            Err(Fault::new(Fault::PARAMS, format!("`_meta` lacks `{key}`")))
        })
    }

    /// Returns the object of the request: a tool, a prompt, a URI.
    pub fn subject(&self) -> Option<&str> {
        let key = match self.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return None,
        };
        self.params.get(key)?.as_str()
    }

    /// Returns the client's name, in any revision.
    pub fn client(&self) -> Option<&str> {
        self.params
            .get("clientInfo")
            .or_else(|| self.meta(CLIENT_KEY))?
            .get("name")?
            .as_str()
    }

    /// Checks the revision of a stateless request.
    pub fn check(&self) -> Result<(), Fault> {
        match self.revision() {
            Some(STATELESS) | None => Ok(()),
            Some(other) => Err(Fault::unspoken(other)),
        }
    }
}

fn server_info() -> Value {
    json!({"name": "quipu", "title": "Quipu", "version": env!("CARGO_PKG_VERSION")})
}

/// Answers the requests that every server answers: the handshake of its revisions, the discovery of
/// the stateless one, and ping. `None` for all others.
pub fn greet(request: &Request, capabilities: Value, instructions: &str) -> Option<Value> {
    let stateless = request.revision().is_some();
    match request.method.as_str() {
        "initialize" if !stateless => {
            let asked = request.params.get("protocolVersion");
            let asked = asked.and_then(Value::as_str);
            let spoken = HANDSHAKES
                .into_iter()
                .find(|version| Some(*version) == asked);
            let spoken = spoken.unwrap_or(HANDSHAKES[0]);
            Some(json!({
                "protocolVersion": spoken,
                "capabilities": capabilities,
                "serverInfo": server_info(),
                "instructions": instructions,
            }))
        }
        "server/discover" => Some(json!({
            "supportedVersions": [STATELESS],
            "capabilities": capabilities,
            "instructions": instructions,
        })),
        "ping" if !stateless => Some(json!({})),
        _ => None,
    }
}

/// Formats a result for its revision. Lists may change at any time, so caching is disabled.
pub fn render_result(request: &Request, mut result: Value) -> Value {
    if request.revision().is_some() || request.method == "server/discover" {
        result["resultType"] = json!("complete");
        if !["tools/call", "prompts/get", "completion/complete"].contains(&request.method.as_str())
        {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        result["_meta"] = json!({SERVER_KEY: server_info()});
    }
    json!({"jsonrpc": "2.0", "id": request.id, "result": result})
}

pub fn render_fault(id: &Value, fault: Fault) -> Value {
    let mut error = json!({"code": fault.code, "message": fault.message});
    if let Some(data) = fault.data {
        error["data"] = *data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}
