"""Adds a bearer token to each request and changes nothing else: for clients that cannot be given one."""
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def token_proxy(port, token):
    """The port of a proxy before the server at `port`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def forward(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            server = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                server.putheader(name, value)
            server.putheader("Authorization", f"Bearer {token}")
            server.endheaders(body)
            answer = server.getresponse()
            text = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            server.close()

        do_GET = do_POST = do_DELETE = do_OPTIONS = do_PUT = forward

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    return proxy.server_port
