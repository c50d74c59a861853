import { describe, expect, test } from "bun:test";
import {
  deferredHandler,
  echoBody,
  echoTarget,
  get,
  nextIteration,
  post,
  respond,
  TestConnection,
} from "./test-connection.ts";

const UNFINISHED_BODY = post("/", "abc").slice(0, -1);

const connect = () => new TestConnection(echoTarget);
/** After the last response the client still sends: that is read and dropped. */
const closing = () =>
  connect()
    .passSeconds(5)
    .receive(get("/a", "Connection: close") + get("/b"));

interface Closing {
  /** What the client sends each second. */
  readonly sends?: string;
  readonly event?: "end" | "shutdown" | "terminate";
  /** The statuses of all responses. */
  readonly statuses?: readonly number[];
}

/** Nothing happens for so many seconds, and the connection closes a second later. */
function expectClosed(client: TestConnection, seconds: number, closing: Closing = {}): void {
  const { sends, event = "end", statuses = [] } = closing;
  const before = [...client.events];
  for (let second = 0; second <= seconds; second++) {
    expect(client.events).toEqual(before);
    if (sends !== undefined) client.receive(sends);
    client.passSeconds(1);
  }
  expect([client.events, client.statuses]).toEqual([[...before, event], [...statuses]]);
}

describe("a connection without a request closes", () => {
  test("after 75 seconds", () =>
    expectClosed(connect().receive(get("/")).passSeconds(75).receive(get("/")), 75, {
      statuses: [200, 200],
    }));

  test("after 75 seconds, although it sends empty lines", () =>
    expectClosed(connect().receive(`${get("/")}\r\n`), 75, { sends: "\r\n", statuses: [200] }));

  test("after 10 seconds if it has never sent anything", () => expectClosed(connect(), 10));

  test("after 10 seconds, although the system could send more of nothing", () =>
    expectClosed(connect().passSeconds(4).drain(), 6));

  test("after 10 seconds if it has sent nothing but empty lines", () =>
    expectClosed(connect(), 10, { sends: "\r\n" }));
});

describe("within 30 seconds has to arrive", () => {
  const late = { event: "shutdown", statuses: [408] } as const;

  test("a head", () => expectClosed(connect().passSeconds(10).receive("GET / HT"), 30, late));

  test("a head, although each second brings a byte", () =>
    expectClosed(connect().passSeconds(10), 30, { ...late, sends: "A" }));

  test("a body whose request has its response, and gets no second one", () =>
    expectClosed(connect().receive(UNFINISHED_BODY), 30, { event: "shutdown", statuses: [200] }));
});

describe("where a body of a request that is not authenticated has 5 seconds", () => {
  const rejected = { event: "shutdown", statuses: [401] } as const;
  const connect = () =>
    new TestConnection(
      (request) => {
        const isKnown = request.headers.get("authorization") !== null;
        if (isKnown) request.markAuthenticated();
        return respond("", isKnown ? 200 : 401);
      },
      { unauthenticatedBodySeconds: 5 },
    );
  const authenticated = UNFINISHED_BODY.replace("\r\n", "\r\nAuthorization: x\r\n");

  test("a body without authentication has them", () =>
    expectClosed(connect().receive(UNFINISHED_BODY), 5, rejected));

  test("a body with authentication has 30", () =>
    expectClosed(connect().receive(authenticated), 30, { event: "shutdown", statuses: [200] }));

  test("a head has 30", () =>
    expectClosed(connect().receive("GET / HT"), 30, { event: "shutdown", statuses: [408] }));

  test("a body without authentication has them also after a request with it", () =>
    expectClosed(connect().receive(`${authenticated}c`, UNFINISHED_BODY), 5, {
      event: "shutdown",
      statuses: [200, 401],
    }));
});

test("a client that does not read its response is disconnected 30 seconds after it has read a byte", () => {
  const client = connect();
  client.writableBytes = 10;
  client.receive(get("/")).passSeconds(30).drain(10);
  expectClosed(client, 30, { event: "terminate", statuses: [200] });
});

test("a client that does not read its 408 is disconnected 30 seconds after it", () => {
  const client = connect().receive("GET / HT");
  client.writableBytes = 20;
  expectClosed(client.passSeconds(31), 30, { event: "terminate", statuses: [408] });
});

test("the end of a shutdown closes a connection without a response that is due, and drops the first part of a head", () => {
  const closed = (text: string) => {
    const { connection, events } = connect().receive(text);
    connection.closeBetweenRequests();
    return events;
  };
  expect(["", "GET / HT", UNFINISHED_BODY].map(closed)).toEqual([["end"], ["end"], []]);
});

test("a connection remembers its last header fields for 2 seconds", () => {
  const headers: unknown[] = [];
  const client = new TestConnection((request) => (headers.push(request.headers), respond("")));
  for (const seconds of [0, 2, 3]) client.passSeconds(seconds).receive(get("/"));
  expect([headers[1] === headers[0], headers[2] === headers[1]]).toEqual([true, false]);
});

describe("what follows the last response is dropped", () => {
  const statuses = [200];

  test("until the client sends nothing for 2 seconds", () =>
    expectClosed(closing().passSeconds(2).receive(get("/c")), 2, { statuses }));

  test("for 30 seconds, although the client sends something each second", () =>
    expectClosed(closing(), 30, { sends: "a", statuses }));

  test("for 2 seconds during a shutdown", () => {
    const client = Object.assign(closing(), { isShuttingDown: true });
    expectClosed(client, 2, { sends: "a", statuses });
  });
});

test("what follows the last response is dropped up to 16 MiB", () => {
  const client = closing();
  for (let i = 0; i < 16; i++) client.receive("a".repeat(1_048_576));
  expect(client.events).toEqual(["shutdown"]);
  expect(client.receive("a").events).toEqual(["shutdown", "end"]);
});

test("408: a body has not arrived within 30 seconds; the handler gets RequestAborted", async () => {
  const reads: string[] = [];
  const client = new TestConnection(async (request) => {
    await Promise.resolve(request.body(100)).catch((error: Error) => reads.push(error.name));
    return respond("not sent");
  });
  client.receive(UNFINISHED_BODY).passSeconds(30);
  expect(client.events).toEqual([]);
  client.passSeconds(1);
  await nextIteration();
  expect([client.statuses, client.events, reads]).toEqual([[408], ["shutdown"], ["RequestAborted"]]);
});

test("a request that has arrived has all the time it needs, and the next one a time limit of its own", async () => {
  const { handle, resolve } = deferredHandler();
  const late = new TestConnection(handle).receive(get("/")).passSeconds(1_000);
  expect(late.events).toEqual([]);
  await resolve("late");
  expect([late.bodies, late.passSeconds(75).events]).toEqual([["late"], []]);
  const client = new TestConnection(echoBody(100)).receive(UNFINISHED_BODY).passSeconds(29).receive("c");
  await nextIteration();
  client.receive("GET / HT").passSeconds(30);
  expect([client.bodies, client.events]).toEqual([["abc"], []]);
});
