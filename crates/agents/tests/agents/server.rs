//! A scripted server on the loopback address.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: serde_json::Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// An answer of the server.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Events, each with its data.
    Events(Vec<String>),
    Status(u16, &'static str, String),
    Json(String),
    /// Some bytes that are no HTTP.
    Garbage,
    /// A stream that stops in the middle of an answer.
    Torn(Vec<String>),
    /// Takes the request and says nothing.
    Hang,
}

type Script = dyn Fn(usize, &Request) -> Reply + Send + Sync;

pub struct Server {
    pub base: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request by the script, which gets the number of the request.
    pub fn start(script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (kept, script): (_, Arc<Script>) = (requests.clone(), Arc::new(script));
        let number = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, script, number) = (kept.clone(), script.clone(), number.clone());
                std::thread::spawn(move || serve(stream, &kept, script.as_ref(), &number));
            }
        });
        Server { base, requests }
    }

    /// Answers in this order, and goes on with the last.
    pub fn scripted(replies: Vec<Reply>) -> Self {
        Server::start(move |number, _| replies[number.min(replies.len() - 1)].clone())
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, kept: &Mutex<Vec<Request>>, script: &Script, number: &AtomicUsize) {
    let Some(request) = read(&stream) else { return };
    kept.lock().unwrap().push(request.clone());
    let send = |stream: &mut TcpStream, head: &str, body: &str| {
        // A client that has left is free to.
        let _ = write!(stream, "HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}");
    };
    let events = |list: &[String]| {
        list.iter()
            .map(|data| format!("data: {data}\n\n"))
            .collect::<String>()
    };
    // Looking around is not asking the model.
    let number = if request.body.is_null() {
        0
    } else {
        number.fetch_add(1, Ordering::SeqCst)
    };
    match script(number, &request) {
        Reply::Events(list) => send(
            &mut stream,
            "200 OK\r\ncontent-type: text/event-stream",
            &events(&list),
        ),
        Reply::Json(body) => send(
            &mut stream,
            "200 OK\r\ncontent-type: application/json",
            &body,
        ),
        Reply::Status(status, header, body) => {
            let header = if header.is_empty() {
                String::new()
            } else {
                format!("\r\n{header}")
            };
            let length = body.len();
            let head = format!(
                "{status} No\r\ncontent-type: application/json\r\ncontent-length: {length}{header}"
            );
            send(&mut stream, &head, &body);
        }
        Reply::Torn(list) => {
            let head = "200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000";
            send(&mut stream, head, &events(&list));
        }
        Reply::Garbage => {
            let _ = stream.write_all(&[0x16, 0x03, 0xff, 0x00, 0x41, 0x0a, 0x0d]);
        }
        Reply::Hang => {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split_whitespace().nth(1)?.to_string();
    let (mut headers, mut length) = (Vec::new(), None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
        headers.push((name.to_string(), value.trim().to_string()));
    }
    let chunked = headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("transfer-encoding") && value.contains("chunked")
    });
    let body = if chunked {
        read_chunks(&mut reader)?
    } else {
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        body
    };
    Some(Request {
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn read_chunks(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let size = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(&chunk[..size]);
    }
}
