import { keyLine, CHUNKED, chunks, clientOf, contentLength, HOST, JSON_TYPE, message } from "../message.ts";
import type { Step } from "../play.ts";

const { get, head, post } = clientOf("main");

const KEY = keyLine("main");
const REX = '{"name":"Rex","categoryId":1}';
/** A request for a pet whose first line, or whose headers, are as they are written here. */
const line = (text: string, ...headers: string[]) => message(text, [HOST, KEY, ...headers]);
const listing = (...headers: string[]) => message("GET /v1/pets?id=1 HTTP/1.1", [KEY, ...headers]);
/** A request to add a pet, framed by these headers. */
const creating = (headers: readonly string[], body: string) =>
  message("POST /v1/pets HTTP/1.1", [HOST, KEY, JSON_TYPE, ...headers], body);
const page = (method: string, path: string, ...headers: string[]) =>
  message(`${method} ${path} HTTP/1.1`, [HOST, ...headers]);

const PAGES: readonly Step[] = [
  ["healthz 200", page("GET", "/healthz")],
  ["HEAD healthz 200: no body", page("HEAD", "/healthz")],
  ["healthz 405: POST", page("POST", "/healthz", "Content-Length: 0")],
  ["openapi.json 200", page("GET", "/openapi.json")],
  ["HEAD openapi.yaml 200: no body", page("HEAD", "/openapi.yaml")],
  [
    "openapi.json 304: the ETag that was given",
    page("GET", "/openapi.json"),
    page("GET", "/openapi.json", "If-None-Match: {{etag}}"),
  ],
  ["docs 200", page("GET", "/docs")],
  ["HEAD docs 200: compressed, and no body", page("HEAD", "/docs", "Accept-Encoding: br")],
  ["docs 404: no such page", page("GET", "/docs/nothing")],
  ["/ 200: where everything is", page("GET", "/")],
  ["/ 200: a page for browsers", page("GET", "/", "Accept: text/html")],
  ["not_found 404: outside of the API, without a key", page("GET", "/nothing")],
  ["OPTIONS * 204: needs no key", page("OPTIONS", "*")],
];

const FRAMING: readonly Step[] = [
  [
    "createPet 201: a body in small chunks, with an extension and a trailer",
    creating([CHUNKED], chunks(REX, 10, "X-Check: 1").replace("\r\n", ";a=b\r\n")),
  ],
  ["createPet 413: a length of more than 128 KiB", creating(["Content-Length: 99999999999"], "{")],
  ["createPet 201: Expect: 100-continue", creating(["Expect: 100-continue", contentLength(REX)], ""), REX],
  [
    "createPet 413: Expect: 100-continue with too long a body",
    creating(["Expect: 100-continue", "Content-Length: 70000"], ""),
  ],
];

const CONNECTIONS: readonly Step[] = [
  {
    name: "several requests at once are responded to in their order",
    send: [get("/pets?id=1"), head("/pets?id=1"), get("/nothing"), post("/pets", REX), get("/pets/1")],
    isPipelined: true,
  },
  {
    name: "a body that is too long costs no connection",
    send: [creating([contentLength(" ".repeat(70_000))], " ".repeat(70_000)), get("/pets?id=1")],
    isPipelined: true,
  },
  ["HTTP/1.0 closes, and needs no Host", message("GET /v1/pets?id=1 HTTP/1.0", [KEY])],
  ["HTTP/1.0 with keep-alive stays", line("GET /v1/pets?id=1 HTTP/1.0", "Connection: keep-alive")],
];

const MALFORMED: readonly Step[] = [
  ["400: not a request", "hello\r\n\r\n"],
  ["400: no Host", listing()],
  ["414: a request line of more than 8 KiB", line(`GET /v1/pets?${"x".repeat(9_000)} HTTP/1.1`)],
  ["431: a head of more than 16 KiB", listing(HOST, `X-Long: ${"x".repeat(20_000)}`)],
  ["501: CONNECT", line("CONNECT petstore.example:443 HTTP/1.1")],
  ["501: an unknown transfer coding", creating(["Transfer-Encoding: gzip, chunked"], chunks("abc", 3))],
  ["505: HTTP/2.0", line("GET /v1/pets HTTP/2.0")],
];

/** The public pages, and HTTP/1.1 itself, as far as its responses differ: test/http1 has the rest. */
export const http: readonly Step[] = [...PAGES, ...FRAMING, ...CONNECTIONS, ...MALFORMED];
