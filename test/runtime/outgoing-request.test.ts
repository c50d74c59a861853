import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import type { Request } from "../../src/http1/index.ts";
import { checkDestinations } from "../../src/doctor/outgoing.ts";
import { HeaderFields } from "../../src/http1/header-fields.ts";
import { statusOf } from "../../src/cli/commands/health.ts";
import { callServer } from "../../src/cli/calls/remote-server.ts";
import { createLog } from "../../src/observe/log.ts";
import { RequestRecord } from "../../src/observe/request-record.ts";
import { Trace } from "../../src/observe/trace.ts";
import { Tracer } from "../../src/observe/tracer.ts";
import { sendMessage } from "../../src/background/webhook-request.ts";
import { Provider } from "../../src/operator/sign-in/provider.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { OutgoingError, sendRequest } from "../../src/runtime/outgoing-request.ts";
import {
  HOSTILE_RESPONSES,
  type HostileResponse,
  startHostileServer,
} from "../../trials/harness/hostile-server.ts";
import { dataIn } from "../data-directory.ts";

const SECRET = "s3cret";
/** The sum of what is sent before a client has gone fills the buffers of both sockets. */
const MAX_SENT_BYTES = 64 * 2 ** 20;

/** How long an attack goes on after which a client can only wait, and how long the others may take at most. */
const [SENDING_MS, WAITING_MS] = [30, 30_000];

/** Everything that sends requests, by its file. Each resolves to all that operators see of the outcome. */
const USERS: Readonly<Record<string, (port: number) => Promise<string>>> = {
  "src/background/webhook-request.ts": async (port) =>
    Bun.inspect(
      await sendMessage(
        { url: `http://127.0.0.1:${port}/${SECRET}?token=${SECRET}`, secrets: [Buffer.from(SECRET)] },
        { id: "a_1_2", body: "{}" },
        { now: 0, signal: new AbortController().signal, timeoutMs: 10_000 },
      ),
    ),
  "src/observe/tracer.ts": async (port) => {
    const lines: string[] = [];
    const tracer = new Tracer({
      url: `http://user:${SECRET}@127.0.0.1:${port}/v1/traces?token=${SECRET}`,
      sample: 1,
      omit: [],
      environment: "production",
      serverId: "one",
      isTls: false,
      routes: new Map(),
      log: createLog({ format: "json", write: (line) => lines.push(line) }),
    });
    const request = { method: "GET", path: "/", headers: HeaderFields.parse(""), clientAddress: "192.0.2.1" };
    const record = new RequestRecord(request as Request, "id");
    record.trace = new Trace();
    tracer.observe(record, { status: 200, headerLines: "", body: null });
    await tracer.close();
    return `${lines.join("")} exported: ${tracer.counts.exported}`;
  },
  "src/cli/commands/health.ts": async (port) =>
    Bun.inspect(
      await statusOf(`http://127.0.0.1:${port}/healthz?${SECRET}`).catch((error: unknown) => error),
    ),
  "src/doctor/outgoing.ts": async (port) => {
    const tracing = { url: `http://127.0.0.1:${port}/${SECRET}/v1/traces` };
    const destinations = { data: dataIn(""), provider: undefined, webhook: undefined, tracing };
    return Bun.inspect(await checkDestinations(destinations, Date.now));
  },
  "src/cli/calls/remote-server.ts": async (port) => {
    const remote = { server: `http://127.0.0.1:${port}`, token: SECRET };
    return Bun.inspect(await callServer(remote, "listOperators").catch((error: unknown) => error));
  },
  "src/operator/sign-in/provider.ts": async (port) => {
    const issuer = `http://127.0.0.1:${port}/${SECRET}`;
    const client = { issuer, clientId: "petstore", secret: () => SECRET, rules: [] };
    const provider = new Provider(client, () => scheduler.now());
    return Bun.inspect(await provider.check().catch((error: unknown) => error));
  },
};

const ROOT = resolve(import.meta.dir, "../..");
const sourceFiles = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => ({
    path: relative(ROOT, join(ROOT, "src", path)),
    text: readFileSync(join(ROOT, "src", path), "utf8"),
  }));
const filesWith = (pattern: RegExp) =>
  sourceFiles.flatMap(({ path, text }) => (pattern.test(text) ? path : [])).toSorted();

/** What runs in the browser, the client library, and examples as text. */
const OF_CLIENTS = /^src\/(?:client|console|docs-site\/browser)\//;

test("every request that leaves a server or a command goes through one function, and the table names who uses it", () => {
  const sends =
    /(?<![.\w])fetch\(|node:https?\b|from "(?:undici|axios|got)"|\b(?:https?|Bun)\.(?:request|connect|get)\(/;
  const others = filesWith(sends).filter((path) => !OF_CLIENTS.test(path));
  expect(others).toEqual(["src/runtime/outgoing-request.ts"]);
  const users = filesWith(/\bsendRequest\(/).filter((path) => path !== "src/runtime/outgoing-request.ts");
  expect(users).toEqual(Object.keys(USERS).toSorted());
});

const restoring: (() => void)[] = [];
afterEach(() => {
  for (const restore of restoring.splice(0)) restore();
});

/**
 * Timers of the scheduler fire when the server has sent for a while, however long they are. Returns how long each was
 * to take.
 */
function fireAfter(sent: Promise<void>): number[] {
  const lengths: number[] = [];
  const spy = spyOn(scheduler, "setTimeout").mockImplementation((work, ms) => {
    lengths.push(ms);
    let isClosed = false;
    void sent.then(() => isClosed || work());
    return { close: () => (isClosed = true), unref() {} };
  });
  restoring.push(() => spy.mockRestore());
  return lengths;
}

const attacks = Object.keys(HOSTILE_RESPONSES) as HostileResponse[];

describe.each(Object.entries(USERS))("%s, whose peer responds with", (_, use) => {
  test.each(attacks)(
    "%s, ends in a bounded time, closes the connection, follows nothing and shows no secret",
    async (name) => {
      await using server = await startHostileServer(name);
      const isSlow = "isSlow" in HOSTILE_RESPONSES[name];
      const sent = server.asked.then(() => Bun.sleep(isSlow ? SENDING_MS : WAITING_MS));
      const lengths = fireAfter(sent);
      const outcome = await use(server.port);
      await server.left;
      expect(outcome).not.toContain(SECRET);
      expect(server.requests.join()).not.toContain("/redirected");
      expect(Math.max(...lengths)).toBeLessThanOrEqual(30_000);
      if (!isSlow) expect(server.sentBytes()).toBeLessThan(MAX_SENT_BYTES);
    },
  );
});

/** The outcome of a request with bounds for tests. */
const outcomeOf = async (port: number, rest: Partial<Parameters<typeof sendRequest>[1]> = {}) =>
  sendRequest(`http://127.0.0.1:${port}/?token=${SECRET}`, {
    timeoutMs: 10_000,
    maxBytes: 1_000,
    ...rest,
  }).catch((error: unknown) => error);

test("a request is sent as it is given, on a connection of its own, and its response is not decompressed", async () => {
  const ports = new Set<number | undefined>();
  using server = Bun.serve({
    port: 0,
    async fetch(request, self) {
      ports.add(self.requestIP(request)?.port);
      const { method, headers } = request;
      const sent = ["accept-encoding", "user-agent", "x-a"].map((name) => headers.get(name));
      // The body is not what its header says.
      const body = JSON.stringify([method, ...sent, await request.text()]);
      return new Response(body, { headers: { "Content-Encoding": "gzip" } });
    },
  });
  const sentWith = async (rest: Parameters<typeof outcomeOf>[1]) => {
    const clock = spyOn(scheduler, "now").mockReturnValue(105.6).mockReturnValueOnce(100);
    restoring.push(() => clock.mockRestore());
    return outcomeOf(server.port ?? 0, rest);
  };
  const usual = ["identity", `Petstore/${packageJson.version}`];
  expect(await sentWith({})).toMatchObject({
    text: JSON.stringify(["GET", ...usual, null, ""]),
    durationMs: 6,
  });
  expect(await sentWith({ method: "PUT", headers: { "X-A": "b" }, body: "text" })).toMatchObject({
    text: JSON.stringify(["PUT", ...usual, "b", "text"]),
  });
  expect(ports.size).toBe(2);
});

describe("a response", () => {
  test("within the bounds has its status, headers and text", async () => {
    using server = Bun.serve({
      port: 0,
      fetch: () => new Response("é".repeat(500), { headers: { "X-A": "b" } }),
    });
    const { status, headers, text } = await sendRequest(`http://127.0.0.1:${server.port}/`, {
      timeoutMs: 10_000,
      maxBytes: 1_000,
    });
    expect([status, headers.get("x-a"), text]).toEqual([200, "b", "é".repeat(500)]);
  });

  test("that is longer is an error, or is cut for a caller who needs the beginning", async () => {
    using server = Bun.serve({ port: 0, fetch: () => new Response("a".repeat(1_001)) });
    const port = server.port ?? 0;
    expect(await outcomeOf(port)).toMatchObject({
      code: "too long",
      message: "the response has more than 1000 bytes",
    });
    expect(await outcomeOf(port, { isEnough: () => false })).toMatchObject({
      status: 200,
      text: "a".repeat(1_000),
    });
  });

  test("that breaks off is an error, or is cut for a caller who needs the beginning", async () => {
    await using server = await startHostileServer("a line of a body that does not end");
    const late = { timeoutMs: 100 };
    expect(await outcomeOf(server.port, late)).toMatchObject({
      code: "timeout",
      message: "no response within 0.1 seconds",
    });
    expect(await outcomeOf(server.port, { ...late, isEnough: () => false })).toMatchObject({ status: 200 });
  });

  test("is not waited for after the caller has ended the request", async () => {
    await using server = await startHostileServer("no response");
    const controller = new AbortController();
    const outcome = outcomeOf(server.port, { signal: controller.signal });
    await server.asked;
    controller.abort();
    expect(await outcome).toMatchObject({ code: "aborted" });
    await server.left;
  });
});

test("an error has a code of the system or of the runtime, and neither the URL nor a cause", async () => {
  const error = await outcomeOf(1);
  expect(error).toBeInstanceOf(OutgoingError);
  expect(error).toMatchObject({ code: expect.stringMatching(/^(?:ECONNREFUSED|ConnectionRefused)$/) });
  expect(Bun.inspect(error)).not.toContain(SECRET);
  expect(Object(error).cause).toBeUndefined();
});
