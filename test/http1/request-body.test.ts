import { expect, test } from "bun:test";
import type { Request, RequestHandler } from "../../src/http1/index.ts";
import {
  CHUNKED_HEAD,
  deferredHandler,
  echoBody,
  echoTarget,
  get,
  nextIteration,
  post,
  postChunked,
  respond,
  TestConnection,
} from "./test-connection.ts";

const MALFORMED_CHUNK = postChunked("/a", "abc").replace("3\r\n", "x\r\n");
const [START, END] = ["POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc", "def"];
const headOf = (bytes: number) => `POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`;
const EXPECTING = post("/", "abc", "Expect: 100-continue").slice(0, -3);
const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

/** The client closes its sending side. */
const CLOSE = Symbol("close");

const echo = echoBody(100_000);
const readLate = async (request: Request) => {
  await nextIteration();
  return echo(request);
};

type Expected = [bodies: string[], events: string[]];
const REJECTED: Expected = [["protocol error 400"], ["shutdown"]];
const BOTH: Expected = [["POST /a ", "GET /b "], []];

test.each<[string, RequestHandler["handle"], (string | typeof CLOSE)[], Expected]>([
  ["a body is waited for", echo, [START, END], [["abcdef"], []]],
  [
    "a body is larger than the handler allows: it is undefined, and the connection stays open",
    echoBody(10),
    [post("/", "a".repeat(11)), postChunked("/", "b".repeat(11)), get("/")],
    [["too large", "too large", ""], []],
  ],
  ["400: a chunk is malformed", echo, [MALFORMED_CHUNK], REJECTED],
  ["400: a chunk that is read late is malformed", readLate, [MALFORMED_CHUNK], REJECTED],
  ["no response: the client closes its side before the end of the body", echo, [START, CLOSE], [[], ["end"]]],
  ["no response: it does so before the body is read", readLate, [START, CLOSE], [[], ["end"]]],
  ["a body that no handler reads is discarded", echoTarget, [post("/a", get("/smuggled")), get("/b")], BOTH],
  ["it is discarded up to 128 KiB", echoTarget, [headOf(131_072), "x".repeat(131_072), get("/b")], BOTH],
  [
    "a longer one closes the connection",
    echoTarget,
    [headOf(131_073), get("/smuggled")],
    [["POST /a "], ["shutdown"]],
  ],
  ["so does a malformed chunk", echoTarget, [MALFORMED_CHUNK], [["POST /a "], ["shutdown"]]],
  ["Expect: 100-continue: the body arrives in parts", echo, [`${EXPECTING}a`, "bc"], [["abc"], []]],
  [
    "Expect: 100-continue: the handler does not read the body, and the client may send it or not",
    () => respond("no", 401),
    [EXPECTING],
    [["no"], ["shutdown"]],
  ],
  ["a client that has sent nothing closes its side", echoTarget, [CLOSE], [[], ["end"]]],
  ["a client that has sent a part of a head closes its side", echoTarget, ["GET / HT", CLOSE], [[], ["end"]]],
])("%s", async (_, handle, sent, [bodies, events]) => {
  const client = new TestConnection(handle);
  for (const each of sent) {
    if (each === CLOSE) client.connection.onEnd();
    else client.receive(each);
    await nextIteration();
  }
  await nextIteration();
  expect([client.bodies, client.events]).toEqual([bodies, events]);
  expect(client.sent.includes("Connection: close\r\n")).toBe(events.includes("shutdown"));
});

test("a body that no handler reads closes the connection when its chunks exceed 128 KiB", () => {
  const client = new TestConnection(echoTarget).receive(CHUNKED_HEAD);
  for (let i = 0; i < 128; i++) client.receive(`400\r\n${"x".repeat(1_024)}\r\n`);
  expect(client.events).toEqual([]);
  client.receive("1\r\nx\r\n");
  expect([client.statuses, client.events]).toEqual([[200], ["shutdown"]]);
});

test("RequestAborted: the client disconnects, before the read and during it, or has its response", async () => {
  const { promise: isClosed, resolve: close } = Promise.withResolvers<void>();
  const failures: string[] = [];
  const failureOf = (body: ReturnType<Request["body"]>) =>
    Promise.resolve(body).catch((error: Error) => void failures.push(error.name));
  const client = new TestConnection(async (request) => {
    await failureOf(request.body(100));
    await isClosed;
    await failureOf(request.body(100));
    return respond("not sent");
  });
  client.receive(START).terminate();
  close();
  await nextIteration();
  expect([failures, client.sent]).toEqual([["RequestAborted", "RequestAborted"], ""]);
  const early = new TestConnection((request) => (void failureOf(request.body(100)), respond("at once")));
  early.receive(START);
  await nextIteration();
  expect([early.bodies, failures.length]).toEqual([["at once"], 3]);
});

test("the response to HEAD whose body is malformed has no body", () => {
  const client = new TestConnection(echo).receive(CHUNKED_HEAD.replace("POST", "HEAD"), "x\r\n");
  expect(client.sent).toMatch(/^HTTP\/1\.1 400 [^]*Content-Length: 18\r\n\r\n$/);
});

test("a body that the handler reads late is read ahead up to 64 KiB", async () => {
  const client = new TestConnection(readLate);
  client.receive(CHUNKED_HEAD + `10\r\n${"x".repeat(16)}\r\n`.repeat(4_000));
  expect(client.events).toEqual(["pause"]);
  while (client.events.length === 1) await nextIteration();
  expect(client.events).toEqual(["pause", "resume"]);
  client.receive("0\r\n\r\n");
  await nextIteration();
  expect(client.bodies.map(({ length }) => length)).toEqual([64_000]);
});

test("Expect: 100-continue: 100 when the handler reads the body, unless it has arrived", async () => {
  const client = new TestConnection(echo).receive(EXPECTING);
  expect(client.sent).toBe(CONTINUE);
  client.receive("abc");
  await nextIteration();
  expect(client.bodies).toEqual(["abc"]);
  expect(new TestConnection(echo).receive(`${EXPECTING}abc`).statuses).toEqual([200]);
  const slow = new TestConnection(echo);
  slow.writableBytes = 5;
  slow.receive(EXPECTING, "abc").drain(5).drain();
  while (slow.bodies.length === 0) await nextIteration();
  expect([slow.statuses, slow.bodies]).toEqual([[100, 200], ["abc"]]);
});

test("a client that has closed its side gets what is pending, pipelined or unread", async () => {
  const { handle, resolve } = deferredHandler();
  const pending = new TestConnection(handle).receive(get("/"));
  pending.connection.onEnd();
  expect(pending.events).toEqual([]);
  await resolve("late");
  expect([pending.bodies, pending.events]).toEqual([["late"], ["end"]]);

  const pipelined = new TestConnection(echoTarget).receive(get("/").repeat(100));
  pipelined.connection.onEnd();
  while (pipelined.events.at(-1) !== "end") await nextIteration();
  expect(pipelined.statuses.length).toBe(100);

  const unread = new TestConnection(echoTarget);
  unread.writableBytes = 10;
  unread.receive(get("/a"), get("/b"), get("/c"));
  unread.connection.onEnd();
  expect(unread.events).toEqual(["pause"]);
  unread.drain();
  expect([unread.bodies, unread.events.at(-1)]).toEqual([["GET /a ", "GET /b ", "GET /c "], "end"]);
});

test("a response is dropped if the client disconnected before it was ready", async () => {
  const { handle, resolve } = deferredHandler();
  const client = new TestConnection(handle).receive(get("/"));
  client.terminate();
  await resolve("late");
  expect([client.sent, client.events, client.traffic.bytesSent]).toEqual(["", ["terminate"], 0]);
});
