import { cases, chunked, CLOSES, get, head, post } from "./case.ts";

const websocket = ["Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];
const upgrade = (...fields: string[]) => get("/", "Connection: Upgrade", ...fields);
const expecting = (value: string) => post("hello", "Content-Length: 5", `Expect: ${value}`);

export const CONNECTION = [
  ...cases("RFC 9112, 9.3: persistence", [
    ["close", get("/", "Connection: close"), "GET /", CLOSES],
    ["close in any case", get("/", "Connection: CLOSE"), "GET /", CLOSES],
    ["close in a list", get("/", "Connection: a, close ,b"), "GET /", CLOSES],
    ["close in a second field", get("/", "Connection: keep-alive", "Connection: close"), "GET /", CLOSES],
    ["close after empty list elements", get("/", "Connection: ,, close"), "GET /", CLOSES],
    ["a request after close is ignored", get("/", "Connection: close") + get("/b"), "GET /", CLOSES],
    ["what is not valid after close is ignored", `${get("/", "Connection: close")}\0\0`, "GET /", CLOSES],
    ["keep-alive", get("/", "Connection: keep-alive"), "GET /"],
    ["an empty list", get("/", "Connection:"), "GET /"],
    ["a token that ends with close", get("/", "Connection: xclose"), "GET /"],
    ["HTTP/1.0 that asks to keep the connection", head("GET / HTTP/1.0", "Connection: keep-alive"), "GET /"],
    ["HTTP/1.0 that asks in any case", head("GET / HTTP/1.0", "Connection: Keep-Alive"), "GET /"],
    ["HTTP/1.0 that asks for both", head("GET / HTTP/1.0", "Connection: keep-alive, close"), "GET /", CLOSES],
    ["a request after HTTP/1.0 is ignored", head("GET / HTTP/1.0") + get("/b"), "GET /", CLOSES],
  ]),
  ...cases("RFC 9112, 9.3.2: pipelining", [
    ["three requests", get("/a") + get("/b") + get("/c"), "GET /a", "GET /b", "GET /c"],
    ["40 requests, more than one turn", get("/a").repeat(40), ...Array<string>(40).fill("GET /a")],
    ["requests behind a body", post("hello", "Content-Length: 5") + get("/b"), 'POST / "hello"', "GET /b"],
    ["requests behind chunks", chunked("1\r\na\r\n0\r\n\r\n") + get("/b"), 'POST / "a"', "GET /b"],
    ["requests behind a trailer", chunked("0\r\nA: b\r\n\r\n") + get("/b"), "POST /", "GET /b"],
    [
      "HEAD between",
      get("/a") + head("HEAD /b HTTP/1.1", "Host: x") + get("/c"),
      "GET /a",
      "HEAD /b",
      "GET /c",
    ],
    ["what is not valid behind a request", `${get("/a")}GET /b\r\n\r\n`, "GET /a", 400],
    ["two Hosts behind a request", get("/a") + get("/b", "Host: y"), "GET /a", 400],
    ["an unknown version behind a request", get("/a") + head("GET / HTTP/2.0"), "GET /a", 505],
  ]),
  ...cases("RFC 9110, 10.1.1: Expect", [
    ["100-continue, and the body without waiting", expecting("100-continue"), 'POST / "hello"'],
    ["100-continue in any case", expecting("100-Continue"), 'POST / "hello"'],
    ["100-continue with chunks", chunked("1\r\na\r\n0\r\n\r\n", "Expect: 100-continue"), 'POST / "a"'],
    ["100-continue without a body", get("/", "Expect: 100-continue"), "GET /"],
    [
      "100-continue in HTTP/1.0",
      head("POST / HTTP/1.0", "Expect: 100-continue", "Content-Length: 1") + "a",
      'POST / "a"',
      CLOSES,
    ],
    ["something else, which is ignored", get("/", "Expect: 200-ok"), "GET /"],
  ]),
  ...cases("RFC 9110, 7.8: Upgrade is ignored", [
    ["WebSocket", upgrade(...websocket, "Sec-WebSocket-Version: 13"), "GET /"],
    ["WebSocket without Connection", get("/", ...websocket, "Sec-WebSocket-Version: 13"), "GET /"],
    ["WebSocket of an unknown version", upgrade(...websocket, "Sec-WebSocket-Version: 99"), "GET /"],
    ["WebSocket with POST", post("", "Connection: Upgrade", ...websocket), "POST /"],
    ["WebSocket in HTTP/1.0", head("GET / HTTP/1.0", "Connection: Upgrade", ...websocket), "GET /", CLOSES],
    ["an unknown protocol", upgrade("Upgrade: made-up/1.0"), "GET /"],
    [
      "HTTP/2 without TLS",
      get("/", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"),
      "GET /",
    ],
  ]),
];
