import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { hostname } from "node:os";
import { join } from "node:path";
import { formatTime } from "../../src/text/formatting.ts";
import { createLog } from "../../src/observe/log.ts";
import { SETTINGS } from "../../src/config/options.ts";
import { parseConfig } from "../config/parsing.ts";
import { until, untilFound } from "../timing.ts";
import { startAdminService, useAdminService } from "./admin-service.ts";

const events: string[] = [];
const log = createLog({ level: "warn", write: (line) => events.push(line) });
const service = await useAdminService({}, {}, undefined, log);

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

describe("questions in the database", () => {
  const ask = async (operation: string, query = "", to?: string) => {
    const { questions } = service.app;
    const id = crypto.randomUUID();
    await questions.ask([{ id, to, operation, query }]);
    try {
      const answer = async () => (await questions.readAnswers([id]))[0]?.answer;
      return JSON.parse(await untilFound(answer, 5_000));
    } catch (error) {
      const [state] = await questions.readAnswers([id]);
      throw new Error(`${operation}: ${Bun.inspect({ state, events })}`, { cause: error });
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
    ["createKey", "", 404, "not_found"],
    ["listKeys", "", 404, "not_found"],
    ["toString", "", 404, "not_found"],
    ["listRequests", "limit=0", 400, "invalid_parameter"],
    ["listRequests", "cursor=%00", 400, "invalid_parameter"],
    ["testWebhook", "", 409, "no_webhook"],
  ])(
    "whoever writes to the database gets nothing else: %s?%s is %d %s",
    async (operation, query, ...error) => {
      const [status, code] = error;
      const problems = status === 400 && { problems: [expect.any(Object)] };
      expect(await ask(operation, query)).toEqual({
        error: { code, message: expect.any(String), status, ...problems },
      });
    },
  );

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
