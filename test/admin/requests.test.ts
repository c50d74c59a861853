import { Database } from "bun:sqlite";
import { describe, expect, jest, spyOn, test } from "bun:test";
import { hostname } from "node:os";
import { join } from "node:path";
import { formatTime } from "../../src/text/formatting.ts";
import { SETTINGS } from "../../src/config/options.ts";
import { toJson } from "../../src/api/json.ts";
import type { QuestionStore } from "../../src/domain/ports/servers.ts";
import type { KeyStore } from "../../src/domain/ports/keys.ts";
import { NO_ACTIVITY, type Question, type ServerState } from "../../src/domain/servers.ts";
import { INTERNAL_ERROR } from "../../src/api/errors.ts";
import { answerQuestions } from "../../src/operator/answer-questions.ts";
import { silentLog } from "../../src/observe/log.ts";
import { requestHandlers } from "../../src/operator/handlers/requests.ts";
import type { RequestPage } from "../../src/operator/operations.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { parseConfig } from "../config/parsing.ts";
import { finish } from "../fake-timers.ts";
import { until, untilFound } from "../timing.ts";
import { startAdminService, useAdminService } from "./admin-service.ts";

const service = await useAdminService();

async function items(query = ""): Promise<Record<string, unknown>[]> {
  const { items } = await service.ok(`/api/requests?${query}`);
  return items as Record<string, unknown>[];
}

describe("listRequests", () => {
  test("finds a request by the id that the client quotes, without secrets, query and body", async () => {
    const headers = { "X-Request-Id": "quoted", "User-Agent": `shop ${service.key} pet_admin_S3cret` };
    await service.call({ method: "POST", path: `/pets?name=S3cret`, headers, body: { name: "S3cret" } });
    const [found, ...others] = await items("requestId=quoted");
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      requestId: "quoted",
      keyId: 1,
      method: "POST",
      path: "/v1/pets",
      operation: "createPet",
      status: 400,
      code: "invalid_body",
      address: "127.0.0.1",
      userAgent: "shop pet_live_… pet_admin_…",
    });
    expect(Bun.inspect(found)).not.toMatch(/S3cret|Secret/);
  });

  test("has pages, newest first, that leave out none", async () => {
    for (let i = 0; i < 7; i++)
      await service.call({ path: "/pets", headers: { "X-Request-Id": `page-${i}` } });
    const ids: unknown[] = [];
    let cursor = "";
    do {
      const page = await service.ok(`/api/requests?operation=listPets&limit=3${cursor}`);
      ids.push(...(page["items"] as { requestId: string }[]).map(({ requestId }) => requestId));
      cursor = page["nextCursor"] === null ? "" : `&cursor=${String(page["nextCursor"])}`;
    } while (cursor !== "");
    expect(ids).toEqual([6, 5, 4, 3, 2, 1, 0].map((i) => `page-${i}`));
  });

  test("takes a class of statuses, a period, and rejects what is none", async () => {
    const now = service.clock.now();
    expect((await items("status=4xx")).every(({ status }) => Number(status) >= 400)).toBe(true);
    expect(await items("status=5xx")).toEqual([]);
    expect(await items(`until=${formatTime(now - 60_000)}`)).toEqual([]);
    expect((await items(`since=${formatTime(now - 60_000)}&keyId=1`)).length).toBeGreaterThan(7);
    for (const query of ["status=6xx", "status=4", "slowerThanMs=0", "operation=none", "cursor=x"])
      expect((await service.admin(`/api/requests?${query}`)).status).toBe(400);
  });

  test("takes an address as operators have it: IPv6 in full, as its network, or otherwise written", async () => {
    const { trustedProxies } = parseConfig({ "trust-proxy": ["127.0.0.1"] });
    const proxied = await startAdminService({}, { trustedProxies });
    const headers = { "X-Forwarded-For": "2001:db8::abcd:1" };
    await proxied.call({ path: "/pets", headers });
    const found = async (address: string) =>
      Object(await proxied.ok(`/api/requests?address=${encodeURIComponent(address)}`))["items"].length;
    for (const address of ["2001:db8::abcd:1", "2001:DB8:0:0:1::", "2001:db8:0:0::/64", "2001:db8::/64"])
      expect([address, await found(address)]).toEqual([address, 1]);
    for (const address of ["2001:db8:1::1", "192.0.2.7", "::1"])
      expect([address, await found(address)]).toEqual([address, 0]);
    for (const address of ["1.2.3", "192.0.2.7/64", "shop"])
      expect((await proxied.admin(`/api/requests?address=${address}`)).status).toBe(400);
    await proxied.stop();
  });

  test("says which server it is and how far back it goes, or that nothing is kept", async () => {
    const { servers } = await service.ok("/api/requests");
    expect(servers).toEqual([
      {
        id: expect.any(String),
        name: expect.stringMatching(/:\d+$/),
        problem: null,
        since: expect.any(String),
      },
    ]);
    const off = await startAdminService({}, { requestLogBytes: 0 });
    await off.call({ path: "/pets" });
    expect(await off.ok("/api/requests")).toMatchObject({
      items: [],
      servers: [
        {
          problem: "the request log is off; restart the server without --request-log 0 to turn it on",
          since: null,
        },
      ],
    });
    await off.stop();
  });
});

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
    expect([servers.map(({ id }) => id), ask.mock.calls]).toEqual([["self"], []]);
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

  test("more than 50 are not asked, and are named", async () => {
    let asked = 0;
    const others = Array.from({ length: 53 }, (_, i) => ({ ...OTHER, id: `other-${i}` }));
    const { listRequests } = requestHandlers({
      requestLog: undefined,
      keys: NO_KEYS,
      servers: { self: SELF, list: () => others, lost: () => [] },
      questions: answering(() => toJson({ error: errorOf(`asked ${++asked}`) })),
    });
    const { servers } = await listRequests({ id: undefined, body: undefined, query: {} } as never);
    expect([asked, servers.length]).toEqual([50, 54]);
    expect(servers.at(-1)?.problem).toBe("only 50 other servers are asked");
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
    const startedAt = scheduler.now();
    const { servers } = await finish(ask(answering(() => undefined)));
    expect(scheduler.now() - startedAt).toBeWithin(2_000, 2_200);
    jest.useRealTimers();
    expect(servers[1]?.problem).toBe("it does not answer");
    const failing = { ...answering(() => ""), ask: () => Promise.reject(new Error("no connection")) };
    expect((await ask(failing)).servers[1]?.problem).toBe("it cannot be asked (no connection)");
  });
});

describe("questions in the database", () => {
  const ask = async (operation: string, query = "", to?: string) => {
    const { questions } = service.app;
    const id = crypto.randomUUID();
    await questions.ask([{ id, to, operation, query }]);
    try {
      const answer = async () => (await questions.readAnswers([id]))[0]?.answer;
      return JSON.parse(await untilFound(answer, 5_000));
    } finally {
      await questions.forget([id]);
    }
  };

  test("are answered by the server, its machine or any, with what operators get", async () => {
    const [{ id }] = (await service.ok("/api/requests"))["servers"] as [{ id: string }];
    for (const to of [undefined, hostname(), id]) {
      const { body } = await ask("listRequests", "limit=1&scope=server", to);
      expect(body).toMatchObject({ items: [{ method: expect.any(String) }], servers: [{ id }] });
    }
    expect((await ask("getSettings")).body).toEqual(await service.ok("/api/settings"));
  });

  test.each([
    ["createKey", "", "not_found"],
    ["listKeys", "", "not_found"],
    ["toString", "", "not_found"],
    ["listRequests", "limit=0", "invalid_parameter"],
    ["listRequests", "cursor=%00", "invalid_parameter"],
    ["testWebhook", "", "no_webhook"],
  ])("whoever writes to the database gets nothing else: %s?%s is %s", async (operation, query, code) => {
    expect(await ask(operation, query)).toMatchObject({ error: { code, message: expect.any(String) } });
  });

  test("an answer of more than 1 MiB, and a handler that fails, are errors with a reason", async () => {
    const answers: string[] = [];
    const taken = ["getWebhook", "testWebhook"].map((operation) => ({ id: operation, operation, query: "" }));
    const look = answerQuestions({
      servers: { self: SELF },
      questions: {
        take: async () => taken,
        answer: async (_id: string, text: string) => void answers.push(text),
      },
      webhook: {
        describe: async () => ({
          url: "x".repeat(2 ** 20),
          events: [],
          waiting: { count: 0 },
          deliveries: [],
        }),
        test: () => Promise.reject(new Error("a defect")),
      },
      log: silentLog,
    } as never);
    await look();
    expect(answers.map((text) => JSON.parse(text).error.message).toSorted()).toEqual([
      INTERNAL_ERROR.message,
      "its answer is longer than 1048576 characters; ask for fewer rows",
    ]);
  });

  test("those that nobody waits for are deleted after 30 seconds, by the server", async () => {
    const { questions, keys } = service.app;
    await questions.ask([{ id: "of one that was killed", to: "nobody", operation: "getServer", query: "" }]);
    const database = new Database(join(service.dataDir, "production.db"));
    const rows = () => database.query("SELECT id FROM server_questions").all();
    await Bun.sleep(300);
    expect(rows()).toHaveLength(1);
    database.run("UPDATE server_questions SET asked_at = asked_at - 30001");
    await until(async () => rows().length === 0, 5_000);
    database.close();
    expect((await keys.changesSince(0)).hasQuestions).toBeFalse();
  });
});

test("--request-log takes megabytes, gigabytes and 0", () => {
  const { type } = SETTINGS["request-log"];
  const parsed = (...texts: string[]) => texts.map((text) => type.parse(text));
  expect(parsed("0", "1MB", "64MB", "1024MB")).toEqual([0, 2 ** 20, 2 ** 26, 2 ** 30]);
  const invalid = parsed("64", "1025MB", "1GB", "1KB", "0MB", "-1MB", "1.5MB", "");
  expect(invalid).toEqual(Array(8).fill(undefined));
  expect([0, 2 ** 25, 2 ** 30].map((bytes) => type.format?.(bytes))).toEqual(["0", "32MB", "1024MB"]);
  expect(type.hint?.("64")).toBe("did you mean 64MB?");
});
