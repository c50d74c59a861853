import { describe, expect, test } from "bun:test";
import {
  deferredHandler,
  echoBody,
  echoTarget,
  get,
  nextTurn,
  post,
  respond,
  TestConnection,
} from "./test-connection.ts";

describe("an idle connection", () => {
  test("closes after 75 seconds without a request", () => {
    const client = new TestConnection(echoTarget).receive(get("/")).passSeconds(75).receive(get("/"));
    expect(client.passSeconds(75).events).toEqual([]);
    expect(client.passSeconds(1).events).toEqual(["end"]);
  });

  test("closes after 10 seconds if it has never sent anything", () => {
    const client = new TestConnection(echoTarget).passSeconds(10);
    expect(client.events).toEqual([]);
    expect(client.passSeconds(1).events).toEqual(["end"]);
  });

  test("closes after 10 seconds if it has sent nothing but empty lines", () => {
    const client = new TestConnection(echoTarget);
    for (let i = 0; i < 10; i++) client.receive("\r\n").passSeconds(1);
    expect(client.events).toEqual([]);
    expect(client.receive("\r\n").passSeconds(1).events).toEqual(["end"]);
  });

  test("is not kept open by empty lines", () => {
    const client = new TestConnection(echoTarget).receive(`${get("/")}\r\n`);
    expect(client.connection.isIdle).toBe(true);
    for (let i = 0; i < 75; i++) client.receive("\r\n").passSeconds(1);
    expect(client.events).toEqual([]);
    client.receive("\r\n").passSeconds(1);
    expect([client.statuses, client.events]).toEqual([[200], ["end"]]);
  });
});

describe("a request that has begun", () => {
  test("408: its head has not arrived within 30 seconds", () => {
    const client = new TestConnection(echoTarget).passSeconds(10).receive("GET / HT").passSeconds(30);
    expect(client.events).toEqual([]);
    client.passSeconds(1);
    expect([client.statuses, client.events]).toEqual([[408], ["shutdown"]]);
  });

  test("408: its head has not arrived within 30 seconds, although each second brings a byte", () => {
    const client = new TestConnection(echoTarget).passSeconds(10);
    for (let i = 0; i < 30; i++) client.receive("A").passSeconds(1);
    expect(client.events).toEqual([]);
    client.receive("A").passSeconds(1);
    expect([client.statuses, client.events]).toEqual([[408], ["shutdown"]]);
  });

  test("408: its body has not arrived within 30 seconds; the handler gets RequestAborted", async () => {
    const reads: string[] = [];
    const client = new TestConnection(async (request) => {
      await Promise.resolve(request.body(100)).catch((error: Error) => reads.push(error.name));
      return respond("not sent");
    });
    client.receive(post("/", "abc").slice(0, -1)).passSeconds(30);
    expect(client.events).toEqual([]);
    client.passSeconds(1);
    await nextTurn();
    expect([client.statuses, client.events, reads]).toEqual([[408], ["shutdown"], ["RequestAborted"]]);
  });

  test("closes the connection without a second response if it was responded to before its body arrived", () => {
    const client = new TestConnection(echoTarget).receive(post("/", "abc").slice(0, -1)).passSeconds(30);
    expect(client.events).toEqual([]);
    client.passSeconds(1);
    expect([client.statuses, client.events]).toEqual([[200], ["shutdown"]]);
  });

  test("has all the time it needs once it has arrived", async () => {
    const { handle, resolve } = deferredHandler();
    const client = new TestConnection(handle).receive(get("/")).passSeconds(1_000);
    expect(client.events).toEqual([]);
    await resolve("late");
    expect([client.bodies, client.passSeconds(75).events]).toEqual([["late"], []]);
  });

  test("is followed by a new time limit for the next one", async () => {
    const client = new TestConnection(echoBody(100)).receive(post("/", "abc").slice(0, -1)).passSeconds(29);
    client.receive("c");
    await nextTurn();
    client.receive("GET / HT").passSeconds(30);
    expect([client.bodies, client.events]).toEqual([["abc"], []]);
  });
});

test("a client that does not read its response for 30 seconds is disconnected", () => {
  const client = new TestConnection(() => respond("abc"));
  client.writableBytes = 10;
  client.receive(get("/")).passSeconds(30).drain(10).passSeconds(30);
  expect(client.events).toEqual(["pause"]);
  expect(client.passSeconds(1).events).toEqual(["pause", "terminate"]);
});

describe("what a client sends after the last response is read and dropped", () => {
  const closing = () => new TestConnection(echoTarget).receive(get("/a", "Connection: close") + get("/b"));

  test("until it sends nothing for 2 seconds", () => {
    const client = closing().passSeconds(2).receive(get("/c"));
    expect(client.passSeconds(2).events).toEqual(["shutdown"]);
    expect(client.passSeconds(1).events).toEqual(["shutdown", "end"]);
    expect(client.bodies).toEqual(["GET /a "]);
  });

  test("for 30 seconds, although it sends something each second", () => {
    const client = closing();
    for (let i = 0; i < 30; i++) client.receive("a").passSeconds(1);
    expect(client.events).toEqual(["shutdown"]);
    expect(client.receive("a").passSeconds(1).events).toEqual(["shutdown", "end"]);
  });

  test("up to 16 MiB", () => {
    const client = closing();
    for (let i = 0; i < 16; i++) client.receive("a".repeat(1_048_576));
    expect(client.events).toEqual(["shutdown"]);
    expect(client.receive("a").events).toEqual(["shutdown", "end"]);
  });

  test("for 2 seconds during a shutdown", () => {
    const client = closing();
    client.isShuttingDown = true;
    for (let i = 0; i < 2; i++) client.receive("a").passSeconds(1);
    expect(client.events).toEqual(["shutdown"]);
    expect(client.receive("a").passSeconds(1).events).toEqual(["shutdown", "end"]);
  });
});
