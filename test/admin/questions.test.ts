import { describe, expect, jest, spyOn, test } from "bun:test";
import { hostname } from "node:os";
import { INTERNAL_ERROR } from "../../src/api/errors.ts";
import { toJson } from "../../src/api/json.ts";
import { encodeCursor } from "../../src/domain/cursor.ts";
import type { KeyStore } from "../../src/domain/ports/keys.ts";
import type { QuestionStore } from "../../src/domain/ports/servers.ts";
import { NO_ACTIVITY, type Question, type ServerState } from "../../src/domain/servers.ts";
import { createLog } from "../../src/observe/log.ts";
import { STAMPS_PER_MS } from "../../src/observe/request-log.ts";
import { answerQuestions } from "../../src/operator/answer-questions.ts";
import { answerWhenAsked } from "../../src/operator/answer-when-asked.ts";
import { requestHandlers } from "../../src/operator/handlers/requests.ts";
import type { RequestPage } from "../../src/operator/operations.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { formatTime } from "../../src/text/formatting.ts";
import { finish, settle } from "../fake-timers.ts";

const SELF = { id: "self", name: hostname(), version: "1", startedAt: 0 };
const OTHER: ServerState = { ...SELF, ...NO_ACTIVITY, id: "other", name: "web-2", seenAt: 0 };

const KEY = { name: "shop", plan: "free", access: "write", labels: [], createdAt: 0 } as const;
const NO_KEYS = { getKeys: () => [] } as Partial<KeyStore> as KeyStore;

const errorOf = (message: string) => ({ code: "no_webhook", message, status: 409 });

/** The questions of servers that answer at once. */
function answering(answerTo: (question: Question) => string | undefined): QuestionStore {
  const asked = new Map<string, Question>();
  return {
    ask: async (questions) => questions.forEach((each) => void asked.set(each.id, each)),
    take: async () => [],
    answer: async () => {},
    readAnswers: (ids) =>
      ids.flatMap((id) => {
        const question = asked.get(id);
        const answer = question && answerTo(question);
        return question ? [{ id, takenBy: "one", ...(answer !== undefined && { answer }) }] : [];
      }),
    forget: async (ids) => ids.forEach((id) => void asked.delete(id)),
  };
}

describe("several servers", () => {
  const item = (id: bigint, server = "other"): RequestPage["items"][number] => ({
    id,
    server,
    requestId: `${id}`,
    at: formatTime(0),
    keyId: null,
    method: "GET",
    path: "/v1/pets",
    operation: "listPets",
    status: 200,
    code: null,
    durationMs: 1,
    address: "192.0.2.1",
    userAgent: null,
  });
  const list = (answer: RequestPage | string, limit: number, keys = NO_KEYS) => {
    const text = typeof answer === "string" ? { error: errorOf(answer) } : { body: answer };
    return requestHandlers({
      requestLog: undefined,
      keys,
      servers: { self: SELF, list: () => [{ ...OTHER, id: "self" }, OTHER], lost: () => [] },
      questions: answering(({ to, operation, query }) => {
        expect([to, operation, query]).toEqual([
          "other",
          "listRequests",
          `limit=${limit}&status=5xx&scope=server`,
        ]);
        return toJson(text);
      }),
    }).listRequests({ id: undefined, body: undefined, query: { limit, status: "5xx" } } as never);
  };
  const page = { nextCursor: null, servers: [{ id: "other", name: "web-2", problem: null, since: null }] };

  test("a server that is alone asks nobody", async () => {
    const questions = answering(() => "");
    const ask = spyOn(questions, "ask");
    const { listRequests } = requestHandlers({
      requestLog: undefined,
      keys: NO_KEYS,
      servers: { self: SELF, list: () => [{ ...OTHER, id: "self" }], lost: () => [] },
      questions,
    });
    const { servers } = await listRequests({ id: undefined, body: undefined, query: {} } as never);
    expect([servers.map(({ id, name }) => [id, name]), ask.mock.calls]).toEqual([[["self", "web-2"]], []]);
  });

  test("are asked for the same, and cut to one page", async () => {
    const result = await list({ ...page, items: [item(3n), item(2n), item(1n)] }, 2);
    expect(result.items.map(({ id }) => id)).toEqual([3n, 2n]);
    expect(result.nextCursor).not.toBeNull();
    expect(result.servers.map(({ id, problem }) => [id, problem])).toEqual([
      ["self", "the request log is off; restart the server without --request-log 0 to turn it on"],
      ["other", null],
    ]);
  });

  test("a page ends where that of one server ends, and says since when each has its requests", async () => {
    const since = formatTime(0);
    const of = { id: "other", name: "web-2", problem: null, since };
    const cursor = encodeCursor("requests", 1n);
    const result = await list({ nextCursor: cursor, servers: [of], items: [item(1n)] }, 2);
    expect(result.nextCursor).toBe(cursor);
    expect(result.servers[1]).toEqual(of);
    const { nextCursor } = await list({ ...page, items: [item(1n)] }, 2);
    expect(nextCursor).toBeNull();
  });

  test("requests have the names of their keys, and none in an outage of the database", async () => {
    const items = [
      { ...item(3n), keyId: 7 },
      { ...item(2n), keyId: 8 },
      { ...item(1n), keyId: null },
    ];
    const named: Partial<KeyStore> = { getKeys: ([id = 0]) => [{ ...KEY, id }] };
    const { items: shown } = await list({ ...page, items }, 3, named as KeyStore);
    expect(shown.map(({ keyName }) => keyName)).toEqual(["shop", null, null]);
    const failing: Partial<KeyStore> = { getKeys: () => Promise.reject(new Error("no connection")) };
    const { items: unnamed } = await list({ ...page, items }, 3, failing as KeyStore);
    expect(unnamed).toEqual(items);
  });

  test("one that rejects, or has answered what this release cannot read, is named with the reason", async () => {
    expect((await list("it has none", 2)).servers[1]).toMatchObject({ id: "other", problem: "it has none" });
    const unknown = (await list({ ...page, items: 3 } as never, 2)).servers[1];
    expect(unknown?.problem).toBe("it is of another release, whose answer this one does not know");
    const rows = [item(1n), { ...item(2n), method: " " }];
    const result = await list({ ...page, items: rows }, 2);
    expect(result.items.map(({ id }) => id)).toEqual([1n]);
    expect(result.servers[1]?.problem).toBe("1 row is left out: this release cannot read it");
  });

  test("a page begins below its cursor, which any server may have made", async () => {
    const at = 1_800_000_000_000;
    const stamp = at * STAMPS_PER_MS;
    const { id: _id, server: _server, at: _at, ...request } = item(0n);
    const conditions: unknown[] = [];
    const requestLog = {
      since: 0,
      find: async (given: object) => {
        conditions.push(given);
        return { items: [{ ...request, stamp }], hasMore: false };
      },
    };
    const { listRequests } = requestHandlers({
      requestLog,
      keys: NO_KEYS,
      servers: { self: SELF, list: () => [], lost: () => [] },
      questions: answering(() => ""),
    } as never);
    const listWith = (query: object) => listRequests({ id: undefined, body: undefined, query } as never);
    const [{ id = 0n } = {}] = (await listWith({})).items;
    expect(id / 1_024n).toBe(BigInt(stamp));
    expect((await listWith({})).items).toMatchObject([{ at: formatTime(at), server: "self" }]);
    for (const cursor of [id - 1n, id, id + 1n]) await listWith({ cursor });
    const [until, address] = [formatTime(at), "2001:db8::1:2"];
    await listWith({ cursor: id + 9_999n, since: until, until, status: "4xx", keyId: 7n, address });
    expect(conditions).toEqual([
      { before: Infinity },
      { before: Infinity },
      { before: stamp },
      { before: stamp },
      { before: stamp + 1 },
      { before: stamp, from: stamp, statuses: [400, 499], keyId: 7, address: "2001:db8:0:0::/64" },
    ]);
  });

  test("more than 50 are not asked, and are named; what was asked is deleted", async () => {
    let asked = 0;
    const others = Array.from({ length: 53 }, (_, i) => ({ ...OTHER, id: `other-${i}` }));
    const questions = answering(() => toJson({ error: errorOf(`asked ${++asked}`) }));
    const forget = spyOn(questions, "forget");
    const { listRequests } = requestHandlers({
      requestLog: undefined,
      keys: NO_KEYS,
      servers: { self: SELF, list: () => others, lost: () => [] },
      questions,
    });
    const { servers } = await listRequests({ id: undefined, body: undefined, query: {} } as never);
    expect([asked, servers.length]).toEqual([50, 54]);
    expect(forget.mock.calls.map(([ids]) => ids.length)).toEqual([50]);
    const problems = servers.slice(1).map(({ problem }) => problem);
    expect(problems.toSorted().slice(0, 4)).toEqual(["asked 1", "asked 10", "asked 11", "asked 12"]);
    expect(problems.slice(50)).toEqual(Array(3).fill("only 50 other servers are asked"));
  });

  test("one that tells of others, or of their requests, is not believed", async () => {
    const servers = [...page.servers, { id: "third", name: "x", problem: null, since: null }];
    const result = await list({ ...page, servers, items: [item(2n, "third"), item(1n)] }, 2);
    expect(result.items.map(({ id }) => id)).toEqual([1n]);
    expect(result.servers.map(({ id }) => id)).toEqual(["self", "other"]);
  });

  test("one that stands still, and a database that fails, delay nobody by more than 2 seconds", async () => {
    const ask = (questions: QuestionStore) =>
      requestHandlers({
        requestLog: undefined,
        keys: NO_KEYS,
        servers: { self: SELF, list: () => [OTHER], lost: () => [] },
        questions,
      }).listRequests({ id: undefined, body: undefined, query: {} } as never);
    jest.useFakeTimers();
    jest.advanceTimersByTime(10_000);
    const startedAt = scheduler.now();
    const { servers } = await finish(ask(answering(() => undefined)));
    expect(scheduler.now() - startedAt).toBeWithin(2_000, 2_200);
    jest.useRealTimers();
    expect(servers[1]?.problem).toBe("it does not answer");
    const failing = { ...answering(() => ""), ask: () => Promise.reject(new Error("no connection")) };
    expect((await ask(failing)).servers[1]?.problem).toBe("it cannot be asked (no connection)");
  });
});

test("an answer of more than 1 MiB, and a handler that fails, are errors with a reason", async () => {
  const answers: string[] = [];
  const lines: Record<string, unknown>[] = [];
  let longest = 2 ** 20;
  const taken = ["getWebhook", "testWebhook"].map((operation) => ({ id: operation, operation, query: "" }));
  const look = answerQuestions({
    servers: { self: SELF },
    questions: {
      take: async () => taken,
      answer: async (_id: string, text: string) => void answers.push(text),
    },
    webhook: {
      describe: async () => ({
        url: "x".repeat(longest),
        events: [],
        waiting: { count: 0 },
        deliveries: [],
      }),
      test: () => Promise.reject(new Error("a defect")),
    },
    log: createLog({ format: "json", write: (line) => lines.push(JSON.parse(line)) }),
  } as never);
  await look();
  const message = "its answer is longer than 1048576 characters; ask for fewer rows";
  expect(answers.map((text) => JSON.parse(text).error)).toEqual(
    expect.arrayContaining([
      { code: "internal_error", message: INTERNAL_ERROR.message, status: 500 },
      { code: "internal_error", message, status: 500 },
    ]),
  );
  expect(lines).toMatchObject([{ requestId: "testWebhook", error: { message: "a defect" } }]);
  // The answer of exactly 1 MiB is sent.
  longest -= JSON.stringify({
    body: { url: "", events: [], waiting: 0, oldestWaitingAt: null, deliveries: [] },
  }).length;
  await look();
  expect(answers.map(({ length }) => length)).toContain(2 ** 20);
});

test("32 questions are answered at once, and a poll that comes meanwhile takes as many as were answered since", async () => {
  const asked: number[] = [];
  const { promise: database, resolve: respond } = Promise.withResolvers<void>();
  const { promise: receiver, resolve: finishAll } = Promise.withResolvers<void>();
  const look = answerQuestions({
    servers: { self: SELF },
    questions: {
      async take(_server: string, _machine: string, most: number) {
        asked.push(most);
        await database;
        return Array.from({ length: Math.min(most, 20) }, (_, i) => ({
          id: `${i}`,
          operation: "testWebhook",
          query: "",
        }));
      },
      answer: async () => {},
    },
    webhook: { test: () => receiver },
    log: createLog({ format: "json", write() {} }),
  } as never);
  const looks = [look(), look(), look()];
  expect(asked).toEqual([32]);
  respond();
  await settle();
  looks.push(look(), look());
  await settle();
  looks.push(look());
  expect(asked).toEqual([32, 12]);
  finishAll();
  await Promise.all(looks);
  looks.push(look());
  expect(asked).toEqual([32, 12, 32]);
  await Promise.all(looks);
});

test("questions that cannot be answered are in the log, once for each outage", async () => {
  const lines: string[] = [];
  const log = createLog({ format: "json", write: (line) => lines.push(JSON.parse(line).event) });
  let isOutage = true;
  const take = () => (isOutage ? Promise.reject(new Error("no connection")) : Promise.resolve([]));
  let [poll, isListening] = [() => {}, true];
  const answering = answerWhenAsked(
    { servers: { self: SELF }, questions: { take }, log } as never,
    (listener) => {
      poll = listener;
      return () => void (isListening = false);
    },
  );
  const polls = async () => {
    for (let i = 0; i < 2; i++) {
      poll();
      await answering.close();
    }
  };
  await polls();
  expect(isListening).toBe(false);
  expect(lines).toEqual(["server.cannot-answer"]);
  isOutage = false;
  await polls();
  isOutage = true;
  await polls();
  expect(lines).toEqual(["server.cannot-answer", "server.cannot-answer"]);
});
