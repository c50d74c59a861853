import { describe, expect, test } from "bun:test";
import type { Request } from "../../src/http1/index.ts";
import {
  CHUNKED_HEAD,
  deferredHandler,
  echoBody,
  echoTarget,
  get,
  nextTurn,
  post,
  postChunked,
  respond,
  TestConnection,
} from "./test-connection.ts";

const MALFORMED_CHUNK = postChunked("/a", "abc").replace("3\r\n", "x\r\n");

describe("a body that the handler reads", () => {
  test("is waited for", async () => {
    const client = new TestConnection(echoBody(100));
    const [start = "", end = ""] = post("/", "abcdef").split("cd");
    client.receive(start);
    await nextTurn();
    expect(client.sent).toBe("");
    client.receive(`cd${end}`);
    await nextTurn();
    expect(client.bodies).toEqual(["abcdef"]);
  });

  test("is undefined if it is larger than the handler allows; the connection stays open", async () => {
    const client = new TestConnection(echoBody(10));
    client.receive(post("/", "a".repeat(11)), postChunked("/", "b".repeat(11)), get("/"));
    await nextTurn();
    expect([client.bodies, client.events]).toEqual([["too large", "too large", ""], []]);
  });

  test("400 and no other response: a chunk is malformed", async () => {
    let failure: unknown;
    const client = new TestConnection(async (request) => {
      await Promise.resolve(request.body(100)).catch((error: unknown) => void (failure = error));
      return respond("not sent");
    });
    client.receive(MALFORMED_CHUNK);
    await nextTurn();
    expect([client.statuses, client.events]).toEqual([[400], ["shutdown"]]);
    expect(failure).toMatchObject({ name: "RequestAborted" });
  });

  test("ends without a response if the client closes its side before the end of the body", async () => {
    const client = new TestConnection(echoBody(100)).receive(post("/", "abc").slice(0, -1));
    client.connection.onEnd();
    await nextTurn();
    expect([client.sent, client.events]).toEqual(["", ["end"]]);
  });

  test("rejects with RequestAborted if the client disconnects, before the read and during it", async () => {
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
    client.receive(post("/", "abc").slice(0, -1));
    client.terminate();
    close();
    await nextTurn();
    expect([failures, client.sent]).toEqual([["RequestAborted", "RequestAborted"], ""]);
  });

  test("rejects with RequestAborted if the handler responds before the body has arrived", async () => {
    let failure = "";
    const client = new TestConnection((request) => {
      Promise.resolve(request.body(100)).catch((error: Error) => void (failure = error.name));
      return respond("at once");
    });
    client.receive(post("/", "abc").slice(0, -1));
    await nextTurn();
    expect([client.bodies, failure]).toEqual([["at once"], "RequestAborted"]);
  });
});

test("the response to HEAD whose body is malformed has no body", () => {
  const client = new TestConnection(echoBody(100)).receive(CHUNKED_HEAD.replace("POST", "HEAD"), "x\r\n");
  expect(client.sent).toMatch(/^HTTP\/1\.1 400 [^]*Content-Length: 18\r\n\r\n$/);
});

describe("a body that the handler reads late", () => {
  const readLate = async (request: Request) => {
    await nextTurn();
    return echoBody(100_000)(request);
  };

  test("is read ahead up to 64 KiB until then", async () => {
    const chunks = `10\r\n${"x".repeat(16)}\r\n`.repeat(4_000);
    const client = new TestConnection(readLate).receive(CHUNKED_HEAD + chunks);
    expect(client.events).toEqual(["pause"]);
    while (client.events.length === 1) await nextTurn();
    expect(client.events).toEqual(["pause", "resume"]);
    client.receive("0\r\n\r\n");
    await nextTurn();
    expect(client.bodies.map(({ length }) => length)).toEqual([64_000]);
  });

  test("400: a chunk is malformed", async () => {
    const client = new TestConnection(readLate).receive(`${CHUNKED_HEAD}zz\r\n`);
    while (client.sent === "") await nextTurn();
    expect([client.statuses, client.events]).toEqual([[400], ["shutdown"]]);
  });

  test("ends without a response if the client has closed its side", async () => {
    const client = new TestConnection(readLate).receive(`${CHUNKED_HEAD}5\r\nab`);
    client.connection.onEnd();
    while (client.events.length === 0) await nextTurn();
    expect([client.sent, client.events]).toEqual(["", ["end"]]);
  });
});

describe("a body that the handler does not read", () => {
  const head = (bytes: number) => `POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`;

  test("is discarded, and the connection stays open", () => {
    const client = new TestConnection(echoTarget);
    client.receive(post("/a", "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"), get("/b"));
    expect([client.bodies, client.events]).toEqual([["POST /a ", "GET /b "], []]);
  });

  test("is discarded up to 128 KiB", () => {
    const client = new TestConnection(echoTarget).receive(head(131_072), "x".repeat(131_072), get("/b"));
    expect([client.bodies, client.events]).toEqual([["POST /a ", "GET /b "], []]);
  });

  test("closes the connection after the response if it is longer than 128 KiB", () => {
    const client = new TestConnection(echoTarget).receive(head(131_073));
    expect([client.bodies, client.events]).toEqual([["POST /a "], ["shutdown"]]);
    expect(client.sent).toContain("Connection: close\r\n");
    client.receive("GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(client.statuses).toEqual([200]);
  });

  test("closes the connection after the response when its chunks exceed 128 KiB", () => {
    const client = new TestConnection(echoTarget).receive(CHUNKED_HEAD);
    for (let i = 0; i < 128; i++) client.receive(`400\r\n${"x".repeat(1_024)}\r\n`);
    expect(client.events).toEqual([]);
    client.receive("1\r\nx\r\n");
    expect([client.statuses, client.events]).toEqual([[200], ["shutdown"]]);
  });

  test("closes the connection after the response if a chunk is malformed", () => {
    const client = new TestConnection(echoTarget).receive(MALFORMED_CHUNK);
    expect([client.statuses, client.events]).toEqual([[200], ["shutdown"]]);
    expect(client.sent).toContain("Connection: close\r\n");
  });
});

describe("Expect: 100-continue", () => {
  const [head, body] = [post("/", "abc", "Expect: 100-continue").slice(0, -3), "abc"];

  test("100 when the handler reads the body, and then the response", async () => {
    const client = new TestConnection(echoBody(100)).receive(head);
    expect(client.sent).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    client.receive(body);
    await nextTurn();
    expect(client.bodies).toEqual(["abc"]);
  });

  test("no 100 if the handler does not read the body; the connection closes, as the client may send it or not", () => {
    const client = new TestConnection(() => respond("no", 401)).receive(head);
    expect([client.statuses, client.events]).toEqual([[401], ["shutdown"]]);
  });

  test("no 100 if the body has arrived already", () => {
    expect(new TestConnection(echoBody(100)).receive(head + body).statuses).toEqual([200]);
  });

  test("the connection stays open when the body arrives in parts", async () => {
    const client = new TestConnection(echoBody(100)).receive(head, "a");
    await nextTurn();
    client.receive("bc");
    await nextTurn();
    expect([client.bodies, client.events]).toEqual([["abc"], []]);
  });

  test("100 and the response reach a client that reads a few bytes at a time", async () => {
    const client = new TestConnection(echoBody(100));
    client.writableBytes = 5;
    client.receive(head, body);
    client.drain(5).drain();
    while (client.bodies.length === 0) await nextTurn();
    expect([client.statuses, client.bodies]).toEqual([[100, 200], ["abc"]]);
  });
});

describe("a client that closes its sending side", () => {
  test("gets a response that is still pending", async () => {
    const { handle, resolve } = deferredHandler();
    const client = new TestConnection(handle).receive(get("/"));
    client.connection.onEnd();
    expect(client.events).toEqual([]);
    await resolve("late");
    expect([client.bodies, client.events]).toEqual([["late"], ["end"]]);
  });

  test("gets the responses to all its pipelined requests", async () => {
    const client = new TestConnection(echoTarget).receive(get("/").repeat(100));
    client.connection.onEnd();
    while (client.events.at(-1) !== "end") await nextTurn();
    expect(client.statuses.length).toBe(100);
  });

  test("gets the responses that wait for it to read", () => {
    const client = new TestConnection(echoTarget);
    client.writableBytes = 10;
    client.receive(get("/a"), get("/b"), get("/c"));
    client.connection.onEnd();
    expect(client.events).toEqual(["pause"]);
    client.drain();
    expect([client.bodies, client.events.at(-1)]).toEqual([["GET /a ", "GET /b ", "GET /c "], "end"]);
  });

  test("is disconnected at once if it sent no request, or a part of one", () => {
    for (const sent of ["", "GET / HT"]) {
      const client = new TestConnection(echoTarget).receive(sent);
      client.connection.onEnd();
      expect([client.sent, client.events]).toEqual(["", ["end"]]);
    }
  });
});

test("a response is dropped if the client disconnected before it was ready", async () => {
  const { handle, resolve } = deferredHandler();
  const client = new TestConnection(handle).receive(get("/"));
  client.terminate();
  await resolve("late");
  expect([client.sent, client.events]).toEqual(["", ["terminate"]]);
});
