import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { IDLE_SECONDS, LINGER_SECONDS, PATIENCE_SECONDS } from "../../src/http1/connection.ts";
import type { Request } from "../../src/http1/request.ts";
import type { Response } from "../../src/http1/response.ts";
import { DATE, reply, Wire } from "./wire.ts";

const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, "Host: x", ...headers, "", ""].join("\r\n");
const post = (path: string, body: string, ...headers: string[]) =>
  [`POST ${path} HTTP/1.1`, "Host: x", `Content-Length: ${body.length}`, ...headers, "", body].join("\r\n");
const chunked = (path: string, body: string) => {
  const chunks = body === "" ? "" : `${body.length.toString(16)}\r\n${body}\r\n`;
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
};

const echo = ({ method, path, query }: Request) => reply(`${method} ${path} ${query}`);
const text = (bytes: Uint8Array | undefined) =>
  bytes === undefined ? "large" : Buffer.from(bytes).toString("latin1");
/** Answers with the body that it was sent, as soon as that is there. */
const reading = (maxBytes: number) => (request: Request) => {
  const body = request.body(maxBytes);
  return body instanceof Promise ? body.then((bytes) => reply(text(bytes))) : reply(text(body));
};
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** An answer that comes when the test says so. */
function later() {
  let come: (reply: Response) => void = () => {};
  const answer = () => new Promise<Response>((resolve) => (come = resolve));
  return { answer, come: (body: string) => (come(reply(body)), settled()) };
}

describe("an answer", () => {
  test("goes out with its date, its length in bytes and its body", () => {
    const wire = new Wire(() => ({ status: 201, lines: "A: b\r\n", body: '"猫"' })).receive(get("/"));
    const sent = Buffer.from(wire.sent, "latin1").toString();
    expect(sent).toBe(`HTTP/1.1 201 Created\r\nA: b\r\n${DATE}Content-Length: 5\r\n\r\n"猫"`);
    expect(wire.events).toEqual([]);
  });

  test("to HEAD has the length, and no body", () => {
    const wire = new Wire(() => reply("abc")).receive("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(wire.sent).toEndWith("Content-Length: 3\r\n\r\n");
  });

  test("without a body has no length", () => {
    const wire = new Wire(() => ({ status: 304, lines: "", body: null })).receive(get("/"));
    expect(wire.sent).toBe(`HTTP/1.1 304 Not Modified\r\n${DATE}\r\n`);
  });

  test("ends the connection that the client wants ended", () => {
    const wire = new Wire(echo).receive(get("/", "Connection: close"));
    expect(wire.sent).toContain("Connection: close\r\n");
    expect(wire.events).toEqual(["end"]);
  });

  test("says so when an HTTP/1.0 client's connection stays", () => {
    const wire = new Wire(echo).receive("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    expect(wire.sent).toContain("Connection: keep-alive\r\n");
    expect(wire.events).toEqual([]);
    expect(new Wire(echo).receive("GET / HTTP/1.0\r\n\r\n").events).toEqual(["end"]);
  });

  test("ends the connection of a server that is leaving", () => {
    const wire = new Wire(echo);
    wire.isLeaving = true;
    expect(wire.receive(get("/")).sent).toContain("Connection: close\r\n");
    expect(wire.events).toEqual(["end"]);
  });

  test("is a fault when it fails, at once or later, and the connection stays", async () => {
    for (const fail of [() => Promise.reject(new Error("x")), () => reply((undefined as never)["x"])]) {
      const wire = new Wire(fail).receive(get("/"));
      await settled();
      expect(wire.receive(get("/")).statuses[0]).toBe(500);
      await settled();
      expect([wire.statuses, wire.events]).toEqual([[500, 500], []]);
    }
  });
});

describe("requests", () => {
  const path = fc.constantFrom("/a", "/b?c=d", "/v1/pets");
  const body = fc.string({ unit: "binary-ascii", maxLength: 40 });
  const ask = fc.oneof(
    path.map((p) => ({ text: get(p), answer: `GET ${p} ` })),
    fc.tuple(path, body).map(([p, b]) => ({ text: post(p, b), answer: `POST ${p} ${b}` })),
    fc.tuple(path, body).map(([p, b]) => ({ text: chunked(p, b), answer: `POST ${p} ${b}` })),
    fc.tuple(path, body).map(([p, b]) => ({ text: post(p, b).replace("POST", "PUT"), answer: "ignored" })),
    path.map((p) => ({ text: `\r\n${get(p)}`, answer: `GET ${p} ` })),
  );

  test("are answered one by one and in their order, however they arrive and whoever takes a while", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(ask, { minLength: 1, maxLength: 80 }),
        fc.array(fc.nat(20_000), { maxLength: 20 }),
        fc.boolean(),
        async (asks, places, takesAWhile) => {
          let underWay = 0;
          const wire = new Wire(async (request) => {
            expect(++underWay).toBe(1);
            const { method, path, query } = request;
            if (takesAWhile) await settled();
            const came = method === "PUT" ? undefined : await request.body(1_000);
            underWay--;
            const target = query === "" ? path : `${path}?${query}`;
            return reply(came === undefined ? "ignored" : `${method} ${target} ${text(came)}`);
          });
          const all = asks.map((asked) => asked.text).join("");
          const ends = [...places.map((place) => place % all.length), all.length].toSorted((a, b) => a - b);
          for (const [i, end] of ends.entries()) {
            wire.receive(all.slice(i === 0 ? 0 : ends[i - 1], end));
            if (i % 3 === 0) await settled();
          }
          while (wire.bodies.length < asks.length) await settled();
          expect(wire.bodies).toEqual(asks.map(({ answer }) => answer));
          expect(wire.events.filter((event) => event !== "pause" && event !== "resume")).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("that come together leave others their turn, and are all answered", async () => {
    const wire = new Wire(echo).receive(get("/a").repeat(100));
    const atOnce = wire.statuses.length;
    expect(atOnce).toBeLessThan(50);
    expect(wire.events).toEqual(["pause"]);
    while (wire.statuses.length < 100) await settled();
    await settled();
    expect(wire.events).toEqual(["pause", "resume"]);
  });

  test("sent ahead of an answer are listened to up to a bound", async () => {
    const { answer, come } = later();
    const wire = new Wire(answer).receive(get("/"), get("/").repeat(1_000));
    expect(wire.events).toEqual([]);
    wire.receive(get("/").repeat(2_000));
    expect(wire.events).toEqual(["pause"]);
    await come("first");
    expect(wire.bodies).toEqual(["first"]);
  });
});

describe("a client that does not read", () => {
  test("gets what is left when it does, byte for byte, and only then the next answer", () => {
    const wire = new Wire(() => reply("猫".repeat(10)));
    const whole = new Wire(() => reply("猫".repeat(10))).receive(get("/"), get("/")).sent;
    for (let room = 0; room < whole.length; room += 7) {
      const slow = new Wire(() => reply("猫".repeat(10)));
      slow.room = room;
      slow.receive(get("/"), get("/"));
      slow.drain(5).drain();
      expect(slow.sent).toBe(whole);
      expect(slow.events.filter((event) => event === "pause").length).toBe(
        slow.events.filter((event) => event === "resume").length,
      );
    }
    wire.room = 10;
    wire.receive(get("/"), get("/"));
    expect(wire.events).toEqual(["pause"]);
  });

  test("is cut off after a while, and not while it goes on reading", () => {
    const wire = new Wire(() => reply("abc"));
    wire.room = 10;
    wire.receive(get("/")).pass(PATIENCE_SECONDS).drain(10).pass(PATIENCE_SECONDS);
    expect(wire.events).toEqual(["pause"]);
    expect(wire.pass(1).events).toEqual(["pause", "terminate"]);
  });
});

test("answers that nobody reads are not made for long", () => {
  let made = 0;
  const wire = new Wire(() => (made++, reply("x".repeat(50_000))));
  wire.room = 0;
  wire.receive(get("/").repeat(30));
  expect(made).toBeLessThanOrEqual(2);
});

describe("a body", () => {
  describe("that somebody asks for late", () => {
    const HEAD = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    const late = async (request: Request) => {
      await settled();
      return reply(text(await request.body(100_000)));
    };

    test("is taken in up to a bound until then, and read on after it", async () => {
      const chunks = `10\r\n${"x".repeat(16)}\r\n`.repeat(4_000);
      const wire = new Wire(late).receive(HEAD + chunks);
      expect(wire.events).toEqual(["pause"]);
      while (wire.events.length === 1) await settled();
      expect(wire.events).toEqual(["pause", "resume"]);
      wire.receive("0\r\n\r\n");
      await settled();
      expect(wire.bodies.map(({ length }) => length)).toEqual([64_000]);
    });

    test("is 400 when it is broken", async () => {
      const wire = new Wire(late).receive(`${HEAD}zz\r\n`);
      while (wire.sent === "") await settled();
      expect([wire.statuses, wire.events]).toEqual([[400], ["shutdown"]]);
    });

    test("is not waited for when the client has gone", async () => {
      const wire = new Wire(late).receive(`${HEAD}5\r\nab`);
      wire.connection.end();
      while (wire.events.length === 0) await settled();
      expect([wire.sent, wire.events]).toEqual(["", ["end"]]);
    });
  });

  test("is waited for", async () => {
    const wire = new Wire(reading(100));
    const [head = "", tail = ""] = post("/", "abcdef").split("cd");
    wire.receive(head);
    await settled();
    expect(wire.sent).toBe("");
    wire.receive(`cd${tail}`);
    await settled();
    expect(wire.bodies).toEqual(["abcdef"]);
  });

  test("is asked for when the client waits to be asked, and only when somebody reads it", async () => {
    const [head, body] = [post("/", "abc", "Expect: 100-continue").slice(0, -3), "abc"];
    const wire = new Wire(reading(100)).receive(head);
    expect(wire.sent).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    wire.receive(body);
    await settled();
    expect(wire.bodies).toEqual(["abc"]);
    // It will not come, or will it? That cannot be told, so the connection ends.
    const refused = new Wire(() => reply("no", 401)).receive(head);
    expect([refused.statuses, refused.events]).toEqual([[401], ["shutdown"]]);
    expect(new Wire(reading(100)).receive(head + body).sent).not.toContain("100 Continue");
  });

  test("that nobody reads is dropped, and the connection stays", () => {
    const wire = new Wire(echo).receive(post("/a", "GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"), get("/b"));
    expect([wire.bodies, wire.events]).toEqual([["POST /a ", "GET /b "], []]);
  });

  test("that nobody reads and that is long ends the connection", () => {
    const wire = new Wire(echo).receive("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n");
    expect([wire.bodies, wire.events]).toEqual([["POST /a "], ["shutdown"]]);
    expect(wire.sent).toContain("Connection: close\r\n");
    // What still comes of it is dropped.
    wire.receive("GET /evil HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(wire.statuses).toEqual([200]);
    expect(wire.pass(LINGER_SECONDS).events).toEqual(["shutdown"]);
    expect(wire.pass(1).events).toEqual(["shutdown", "end"]);
  });

  test("that nobody reads and that becomes long ends the connection after its answer", () => {
    const wire = new Wire(echo).receive("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (let i = 0; i < 130; i++) wire.receive(`400\r\n${"x".repeat(1_024)}\r\n`);
    expect([wire.statuses, wire.events]).toEqual([[200], ["shutdown"]]);
  });

  test("that nobody reads and that is broken ends the connection with its answer", () => {
    const broken = new Wire(echo).receive(chunked("/a", "abc").replace("3\r\n", "x\r\n"));
    expect([broken.statuses, broken.events]).toEqual([[200], ["shutdown"]]);
    expect(broken.sent).toContain("Connection: close\r\n");
  });

  test("that was invited is not taken for one that was not", async () => {
    const [head, tail] = [post("/", "abc", "Expect: 100-continue").slice(0, -3), "abc"];
    const wire = new Wire(reading(100)).receive(head, "a");
    await settled();
    wire.receive(tail.slice(1));
    await settled();
    expect([wire.bodies, wire.events]).toEqual([["abc"], []]);
  });

  test("is invited, and answered, by a line that takes little at a time", async () => {
    const wire = new Wire(reading(100));
    wire.room = 5;
    wire.receive(post("/", "abc", "Expect: 100-continue").slice(0, -3), "abc");
    wire.drain(5).drain();
    while (wire.bodies.length === 0) await settled();
    expect([wire.statuses, wire.bodies]).toEqual([[100, 200], ["abc"]]);
  });

  test("that is too large is told so, and dropped if it is not much larger", async () => {
    const wire = new Wire(reading(10)).receive(
      post("/", "a".repeat(11)),
      chunked("/", "b".repeat(11)),
      get("/"),
    );
    await settled();
    expect([wire.bodies, wire.events]).toEqual([["large", "large", ""], []]);
  });

  test("that is broken is 400 and nothing else, and nobody gets it", async () => {
    let failure: unknown;
    const wire = new Wire(async (request) => {
      await Promise.resolve(request.body(100)).catch((error: unknown) => void (failure = error));
      return reply("not sent");
    });
    wire.receive(chunked("/", "abc").replace("3\r\n", "x\r\n"));
    await settled();
    expect([wire.statuses, wire.events, (failure as Error).name]).toEqual([
      [400],
      ["shutdown"],
      "RequestAborted",
    ]);
  });

  test("that never comes fails for whoever reads it, and nothing is answered", async () => {
    const wire = new Wire(reading(100)).receive(post("/", "abc").slice(0, -1));
    wire.connection.end();
    await settled();
    expect([wire.sent, wire.events]).toEqual(["", ["end"]]);
  });
});

describe("a client that sends no more", () => {
  test("still gets what it has asked for", async () => {
    const { answer, come } = later();
    const wire = new Wire(answer).receive(get("/"));
    wire.connection.end();
    expect(wire.events).toEqual([]);
    await come("late");
    expect([wire.bodies, wire.events]).toEqual([["late"], ["end"]]);
  });

  test("gets all of many, too", async () => {
    const wire = new Wire(echo).receive(get("/").repeat(100));
    wire.connection.end();
    while (wire.events.at(-1) !== "end") await settled();
    expect(wire.statuses.length).toBe(100);
  });

  test("gets those as well that waited for it to read", () => {
    const wire = new Wire(echo);
    wire.room = 10;
    wire.receive(get("/a"), get("/b"), get("/c"));
    wire.connection.end();
    expect(wire.events).toEqual(["pause"]);
    wire.drain();
    expect([wire.bodies, wire.events.at(-1)]).toEqual([["GET /a ", "GET /b ", "GET /c "], "end"]);
  });

  test("is let go at once when it asked for nothing, or for half of something", () => {
    for (const sent of ["", "GET / HT"]) {
      const wire = new Wire(echo).receive(sent);
      wire.connection.end();
      expect([wire.sent, wire.events]).toEqual(["", ["end"]]);
    }
  });
});

describe("what is no request", () => {
  test.each([
    [400, "asdf\r\n\r\n"],
    [400, "\x16\x03\x01\x02\x00\x01"],
    [400, "GET / HTTP/1.1\nHost: x\n\n"],
    [400, "\n"],
    [400, "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n"],
    [431, `GET / HTTP/1.1\r\nA: ${"a".repeat(17_000)}`],
    [431, `GET / HTTP/1.1\r\nHost: x\r\nA: ${"a".repeat(17_000)}\r\n\r\n`],
    [431, get("/", ...Array.from({ length: 128 }, () => "A: b"))],
    [400, "\r\n\n"],
    [400, "\r\rGET"],
    [505, "GET / HTTP/3.0\r\nHost: x\r\n\r\n"],
  ])("is %d without a body, and the connection ends: %p", (status, sent) => {
    const wire = new Wire(echo).receive(sent, get("/"));
    expect(wire.sent).toMatch(
      /^HTTP\/1\.1 \d+ .*\r\nDate: .*\r\nConnection: close\r\nContent-Length: 0\r\n\r\n$/,
    );
    expect([wire.statuses, wire.events]).toEqual([[status], ["shutdown"]]);
  });

  test("comes after the answers to what was", () => {
    expect(new Wire(echo).receive(`${get("/a")}asdf\r\n\r\n`).statuses).toEqual([200, 400]);
  });

  test("a head of 128 fields is one", () => {
    expect(new Wire(echo).receive(get("/", ...Array.from({ length: 127 }, () => "A: b"))).statuses).toEqual([
      200,
    ]);
  });

  test("a head of 16,000 bytes is one", () => {
    expect(new Wire(echo).receive(get("/", `A: ${"a".repeat(15_900)}`)).statuses).toEqual([200]);
  });
});

describe("time", () => {
  test("an idle connection is ended after a while, and one that is used is not", () => {
    const wire = new Wire(echo).pass(IDLE_SECONDS).receive(get("/")).pass(IDLE_SECONDS);
    expect(wire.events).toEqual([]);
    expect(wire.pass(1).events).toEqual(["end"]);
  });

  test("a request that comes too slowly is 408, however steadily it comes", () => {
    const wire = new Wire(echo).pass(10);
    for (let i = 0; i <= PATIENCE_SECONDS; i++) wire.receive("A").pass(1);
    expect([wire.statuses, wire.events]).toEqual([[408], ["shutdown"]]);
  });

  test("a body that comes too slowly is 408, and fails for whoever reads it", async () => {
    const wire = new Wire(reading(100)).receive(post("/", "abc").slice(0, -1)).pass(PATIENCE_SECONDS + 1);
    await settled();
    expect([wire.statuses, wire.events]).toEqual([[408], ["shutdown"]]);
  });

  test("an unread body that comes too slowly ends the connection, and is not answered again", () => {
    const wire = new Wire(echo).receive(post("/", "abc").slice(0, -1)).pass(PATIENCE_SECONDS + 1);
    expect([wire.statuses, wire.events]).toEqual([[200], ["shutdown"]]);
  });

  test("empty lines are no request, and keep no connection", () => {
    const wire = new Wire(echo).receive(`${get("/")}\r\n`);
    expect(wire.connection.isIdle).toBe(true);
    for (let i = 0; i <= IDLE_SECONDS; i++) wire.receive("\r\n").pass(1);
    expect([wire.statuses, wire.events]).toEqual([[200], ["end"]]);
  });

  test("an answer may take as long as it takes", async () => {
    const { answer, come } = later();
    const wire = new Wire(answer).receive(get("/")).pass(1_000);
    expect(wire.events).toEqual([]);
    await come("late");
    expect(wire.pass(IDLE_SECONDS).events).toEqual([]);
  });
});

describe("a request behind the last one", () => {
  test("is dropped, and the last answer arrives all the same", () => {
    const wire = new Wire(echo).receive(get("/a", "Connection: close") + get("/b"));
    expect([wire.bodies, wire.events]).toEqual([["GET /a "], ["shutdown"]]);
  });

  test("is listened to again, so that its end is heard", () => {
    const wire = new Wire(echo);
    wire.room = 10;
    wire.receive(get("/a"), get("/b", "Connection: close") + get("/c"));
    wire.drain();
    expect(wire.events).toEqual(["pause", "resume", "shutdown"]);
  });
});

describe("an answer to nobody", () => {
  test("is made for no address when the client has gone before it was looked at", () => {
    const peers: string[] = [];
    const note = ({ remoteAddress }: Request) => (peers.push(remoteAddress), reply(""));
    new Wire(note).receive(get("/"));
    new Wire(note, null).receive(get("/"));
    expect(peers).toEqual(["203.0.113.9", ""]);
  });

  test("is not waited for by whoever wants its body, before the end or after", async () => {
    const { promise: isClosed, resolve: close } = Promise.withResolvers<void>();
    const failures: string[] = [];
    const failing = (body: ReturnType<Request["body"]>) =>
      Promise.resolve(body).catch((error: Error) => void failures.push(error.name));
    const wire = new Wire(async (request) => {
      await failing(request.body(100));
      await isClosed;
      await failing(request.body(100));
      return reply("not sent");
    });
    wire.receive(post("/", "abc").slice(0, -1));
    wire.terminate();
    close();
    await settled();
    expect([failures, wire.sent]).toEqual([["RequestAborted", "RequestAborted"], ""]);
  });

  test("leaves nobody waiting for a body that is not needed for it", async () => {
    let failure = "";
    const wire = new Wire((request) => {
      Promise.resolve(request.body(100)).catch((error: Error) => void (failure = error.name));
      return reply("at once");
    });
    wire.receive(post("/", "abc").slice(0, -1));
    await settled();
    expect([wire.bodies, failure]).toEqual([["at once"], "RequestAborted"]);
  });

  test("is dropped when the connection has closed meanwhile", async () => {
    const { answer, come } = later();
    const wire = new Wire(answer).receive(get("/"));
    wire.terminate();
    await come("late");
    expect([wire.sent, wire.events]).toEqual(["", ["terminate"]]);
  });
});
