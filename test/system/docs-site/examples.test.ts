import { startForwardingProxy } from "../../../trials/harness/forwarding-proxy.ts";
import { afterAll, describe, expect, test } from "bun:test";
import { OPERATIONS } from "../../../src/petstore/operations.ts";
import type { OperationId } from "../../../src/domain/operation-ids.ts";
import { DOCUMENTED_DEFAULTS } from "../../../src/cli/documented-defaults.ts";
import { exampleContext, examplesOf, inContext } from "../../../src/docs-site/examples.ts";
import { GUIDE_SOURCES } from "../../../src/docs-site/sources.ts";
import { EXAMPLE_LANGUAGES, type ExampleLanguage } from "../../../src/docs-site/page-data.ts";
import { type Service, startService } from "../../service.ts";
import { guideExamples, only, outputOf, type Program, typeErrorsOf, withKey } from "./example-runner.ts";

const LANGUAGES = Object.keys(EXAMPLE_LANGUAGES) as ExampleLanguage[];

const REX = '{"id":1,"name":"Rex","categoryId":7,"status":"available"}';
const order = (status: string) =>
  `{"id":1,"petId":1,"status":"${status}","createdAt":"2026-11-15T12:00:00.000Z"}`;

/** A window after eight requests. */
const window8 = (resetAt: string) => `{"limit":1000000000,"remaining":999999992,"resetAt":"${resetAt}"}`;

/** In the order of a reader: later ones use the pet and the order of earlier ones. */
const RESPONSES: Readonly<Record<OperationId, string>> = {
  createPet: REX,
  listPets: `[${REX}]`,
  getPet: REX,
  placeOrder: order("placed"),
  getOrder: order("placed"),
  listOrders: `[${order("placed")}]`,
  updateOrder: order("completed"),
  getKey: `{"id":1,"name":"test","plan":"enterprise","access":"write","expiresAt":null,"minute":${window8("2026-11-15T12:01:00.000Z")},"day":${window8("2026-11-16T12:00:00.000Z")}}`,
};

const statusOf = (operationId: OperationId) => OPERATIONS[operationId].success.status;

/** What the client library makes of a number: `limit` and `remaining` are counts. */
function exactIds(name: string, value: unknown): unknown {
  return typeof value === "number" && name !== "limit" && name !== "remaining" ? BigInt(value) : value;
}

/** The response as each language prints it. The client library gives objects with bigints. */
const PRINTED: Readonly<Record<ExampleLanguage, (operationId: OperationId) => string>> = {
  curl: (operationId) => RESPONSES[operationId],
  typescript: (operationId) => `${Bun.inspect(JSON.parse(RESPONSES[operationId], exactIds))}\n`,
  fetch: (operationId) => `${statusOf(operationId)} ${RESPONSES[operationId]}\n`,
  python: (operationId) => `${statusOf(operationId)} ${RESPONSES[operationId]}\n`,
};

test.each(LANGUAGES)(
  "the examples of the operations in %s print what the server responds",
  async (language) => {
    await using service = await startService();
    const { url: baseUrl, key } = service;
    const operationIds = Object.keys(RESPONSES) as OperationId[];
    expect(operationIds.toSorted()).toEqual((Object.keys(OPERATIONS) as OperationId[]).toSorted());
    for (const operationId of operationIds) {
      const examples = withKey(key, examplesOf(operationId, { baseUrl, key }));
      expect(await outputOf(only(language, examples))).toBe(PRINTED[language](operationId));
    }
  },
);

test("the examples in TypeScript compile", async () => {
  const context = exampleContext(DOCUMENTED_DEFAULTS);
  const groups = [
    ...Object.keys(OPERATIONS).map((id) => [id, examplesOf(id as OperationId, context)] as const),
    ...guideExamples(context),
  ];
  const programs = groups.map(([name, examples]) => [name, only("typescript", examples).code]);
  expect(await typeErrorsOf(Object.fromEntries(programs))).toBe("");
});

const createPet = ({ call }: Service, name: string) =>
  call({ method: "POST", path: "/pets", body: { name, categoryId: 7 } });

/** Has pets 1 to 10. */
const service = await startService();
for (let id = 1; id <= 10; id++) await createPet(service, `pet ${id}`);
afterAll(() => service.stop());

/** Forwards requests to a service. `change` sees each response and can give the client another. */
function startProxy(
  { url: target }: Service,
  change: (response: Response) => Response | Promise<Response> | undefined,
) {
  const statuses: number[] = [];
  const { url, stop } = startForwardingProxy(target, async (forward) => {
    const response = await forward();
    statuses.push(response.status);
    return (await change(response)) ?? response;
  });
  return { url, statuses, [Symbol.asyncDispose]: stop };
}

const problem = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ code, message: `${code}.`, status }, { status, headers });

type Target = Pick<Service, "url" | "key">;

function exampleIn(language: ExampleLanguage, name: string, { url, key }: Target = service): Program {
  return only(language, guideExamples({ baseUrl: url, key }).get(name) ?? []);
}

/** The output in each language. */
async function outputs(name: string, target?: Target): Promise<Record<string, string>> {
  const runs = LANGUAGES.map(async (language) => [
    language,
    await outputOf(exampleIn(language, name, target)),
  ]);
  return Object.fromEntries(await Promise.all(runs));
}

const tested = new Set<string>();

/** A test of the example with this name. */
function example(name: string, promise: string, check: () => Promise<void>): void {
  tested.add(name);
  test(`${name}: ${promise}`, check);
}

describe("the examples of the guides, in each language", () => {
  example("quickstart", "a pet is added, listed, ordered and sold", async () => {
    const lines = ["1 Rex", "completed"];
    for (const language of LANGUAGES) {
      await using shop = await startService();
      const output = await outputOf(exampleIn(language, "quickstart", shop));
      if (language === "curl")
        expect(output).toEndWith('"status":"completed","createdAt":"2026-11-15T12:00:00.000Z"}');
      else expect(output.replace("1n", "1").trim().split("\n")).toEqual(lines);
      const { json } = await shop.call({ path: "/pets" });
      expect(json).toEqual([{ id: 1, name: "Rex", categoryId: 7, status: "sold" }]);
    }
  });

  test("single commands work with the variables of the quickstart", async () => {
    const markdown = inContext(Object.values(GUIDE_SOURCES).join("\n"), {
      baseUrl: service.url,
      key: service.key,
    });
    const commands = Array.from(markdown.matchAll(/^```sh\n(curl .*?)^```$/gms), ([, code = ""]) => code);
    expect(commands.length).toBeGreaterThan(2);
    for (const command of commands) {
      const code = `API=${service.url}\n${command.replace(/^curl/, "curl --fail-with-body")}`;
      expect(await outputOf({ language: "curl", code, key: service.key })).not.toStartWith("exit code");
    }
  });

  example("pagination", "each pet of three pages is printed once", async () => {
    await using shop = await startService();
    const names = Array.from({ length: 201 }, (_, i) => `pet-${i + 1}.`);
    await Promise.all(names.map((name) => createPet(shop, name)));
    for (const output of Object.values(await outputs("pagination", shop)))
      expect((output.match(/pet-\d+\./g) ?? []).toSorted()).toEqual(names.toSorted());
  });

  example("rate-limits", "a 429 is repeated once, after Retry-After", async () => {
    const runs = LANGUAGES.map(async (language) => {
      await using shop = await startService();
      const { secret: key } = await shop.newKey({ limits: { perMinute: 1, perDay: 100 } });
      expect((await shop.call({ path: "/pets", key })).status).toBe(200);
      shop.clock.advance(59_000);
      await using proxy = startProxy(shop, ({ status }) => {
        if (status === 429) shop.clock.advance(1_000);
        return undefined;
      });
      const output = await outputOf(exampleIn(language, "rate-limits", { url: proxy.url, key }));
      expect([language, proxy.statuses]).toEqual([language, [429, 200]]);
      expect(output).toBe(language === "curl" ? "" : "0 pets; 0 requests left\n");
    });
    await Promise.all(runs);
  });

  test.each(LANGUAGES)("rate-limits: in %s, a 503 is repeated after Retry-After", async (language) => {
    const replies = [() => problem(503, "unavailable", { "Retry-After": "1" })];
    await using proxy = startProxy(service, () => replies.shift()?.());
    const { key } = service;
    const output = await outputOf(exampleIn(language, "rate-limits", { url: proxy.url, key }));
    expect([output.includes("exit code"), proxy.statuses]).toEqual([false, [200, 200]]);
  });

  test("rate-limits: curl repeats what a restarting server refuses", async () => {
    const { code, key } = exampleIn("curl", "rate-limits", {
      url: "http://127.0.0.1:1/v1",
      key: service.key,
    });
    const output = await outputOf({ language: "curl", code: code.replace("retry 5", "retry 1"), key });
    expect(output).toMatch(/^exit code 7\n[^]*Will retry/);
  });

  example("idempotency", "a create whose response is lost is repeated, and creates one pet", async () => {
    const runs = LANGUAGES.map(async (language) => {
      await using shop = await startService();
      let isLost = false;
      await using proxy = startProxy(shop, () => {
        if (isLost) return undefined;
        isLost = true;
        return new Response("", { status: 503, headers: { "Retry-After": "1" } });
      });
      const output = await outputOf(exampleIn(language, "idempotency", { url: proxy.url, key: shop.key }));
      expect([language, proxy.statuses]).toEqual([language, [201, 201]]);
      expect(output).toContain(language === "typescript" ? "1n" : '{"id":1,"name":"Rex","categoryId":7}');
      expect((await shop.call({ path: "/pets" })).text).toBe('[{"id":1,"name":"Rex","categoryId":7}]');
    });
    await Promise.all(runs);
  });

  test.each(["curl", "fetch", "python"] as const)(
    "idempotency: in %s, no response in time, 409 and 429 are repeated, and one pet is created",
    async (language) => {
      await using shop = await startService();
      const replies = [
        () => Bun.sleep(5_000).then(() => new Response("")),
        () => problem(409, "idempotency_conflict"),
        () => problem(429, "rate_limited", { "Retry-After": "1" }),
      ];
      await using proxy = startProxy(shop, () => replies.shift()?.());
      const { code, key } = exampleIn(language, "idempotency", { url: proxy.url, key: shop.key });
      const limits = { curl: "--max-time 15", fetch: "timeout(15_000)", python: "timeout=15" };
      expect(code).toContain(limits[language]);
      const impatient = code
        .replace("15_000", "1_000")
        .replace("timeout=15", "timeout=1")
        .replace("time 15", "time 1")
        .replace(/(?:Math|random)\.random\(\)/, "0");
      expect(await outputOf({ language, code: impatient, key })).toContain(
        '{"id":1,"name":"Rex","categoryId":7}',
      );
      // On a busy machine more than the first response are late, and repeated too.
      expect(proxy.statuses.slice(0, 4)).toEqual([201, 201, 201, 201]);
      expect(replies).toEqual([]);
      expect((await shop.call({ path: "/pets" })).text).toBe('[{"id":1,"name":"Rex","categoryId":7}]');
    },
  );

  test.each(["curl", "fetch", "python"] as const)(
    "idempotency: in %s, the last attempt that fails is an error with the reason",
    async (language) => {
      await using shop = await startService();
      await using proxy = startProxy(shop, () => problem(503, "unavailable"));
      const failures = [
        [proxy.url, language === "curl" ? /^exit code 22\n/ : /^exit code 1\n[^]*503 .*unavailable/],
        ["http://127.0.0.1:1/v1", /^exit code [17]\n/],
      ] as const;
      for (const [url, reason] of failures) {
        const { code, key } = exampleIn(language, "idempotency", { url, key: shop.key });
        const once = code.replace("retry 5", "retry 0").replace(/(attempt ===?) 6/, "$1 1");
        expect(once).not.toBe(code);
        expect(await outputOf({ language, code: once, key })).toMatch(reason);
      }
    },
  );

  test.each(["fetch", "python"] as const)(
    "rate-limits: in %s, a 429 that stays is an error with the reason",
    async (language) => {
      await using proxy = startProxy(service, () => problem(429, "key_banned"));
      const { code, key } = exampleIn(language, "rate-limits", { url: proxy.url, key: service.key });
      const once = code.replace(/(maxAttempts = |max_attempts=)6/, "$11");
      expect(once).not.toBe(code);
      expect(await outputOf({ language, code: once, key })).toMatch(/key_banned|429 Client Error/);
      expect(proxy.statuses).toHaveLength(1);
    },
  );

  test("an example whose request is rejected ends with an error that says why", async () => {
    const target = { baseUrl: service.url, key: "pet_live_wrong" };
    const programs = [
      ...guideExamples(target),
      ["createPet", withKey(target.key, examplesOf("createPet", target))] as const,
    ];
    // The client throws errors, and people read the response to a single command of curl.
    const isTried = (language: ExampleLanguage, name: string) =>
      language === "curl"
        ? ["quickstart", "pagination"].includes(name)
        : language !== "typescript" || name === "errors";
    const runs = programs.flatMap(([name, examples]) =>
      examples
        .filter(({ language }) => isTried(language, name))
        .map(async (program) => [name, program.language, await outputOf(program)]),
    );
    expect(runs).toHaveLength(19);
    for (const run of await Promise.all(runs))
      expect(run).toEqual([
        run[0],
        run[1],
        expect.stringMatching(/^exit code \d+\n[^]*(?:401|invalid_api_key)/),
      ]);
  });

  test("fetch and Python wait for no response longer than 15 seconds", () => {
    for (const [name, examples] of guideExamples({ baseUrl: service.url, key: service.key })) {
      expect([name, only("fetch", examples).code]).toEqual([
        name,
        expect.stringContaining("timeout(15_000)"),
      ]);
      expect([name, only("python", examples).code]).toEqual([name, expect.stringContaining("timeout=15")]);
    }
  });

  example("errors", "the code tells that the order does not exist", async () => {
    const { curl, ...others } = await outputs("errors");
    expect(curl).toBe('{"code":"order_not_found","message":"Order 42 does not exist.","status":404}\n404\n');
    for (const output of Object.values(others)) expect(output).toBe("You have no such order.\n");
  });

  example("integers", "9007199254740993 comes back as it went in", async () => {
    const { typescript, fetch, curl, python } = await outputs("integers");
    expect([typescript, fetch]).toEqual(["9007199254740993n\n", "9007199254740993n\n"]);
    expect(curl).toContain('"categoryId":9007199254740993}');
    expect(python).toContain("'categoryId': 9007199254740993}");
  });

  example("deprecation", "pet 7 is printed, or that there is none", async () => {
    const name = "pet 7\n";
    const curl = '[{"id":7,"name":"pet 7","categoryId":7}]';
    expect(await outputs("deprecation")).toEqual({ typescript: name, fetch: name, python: name, curl });
    await using empty = await startService();
    const none = "There is no pet 7.\n";
    const expected = { typescript: none, fetch: none, python: none, curl: "[]" };
    expect(await outputs("deprecation", empty)).toEqual(expected);
  });

  test("each of them has a test", () => {
    expect([...tested].toSorted()).toEqual(
      [...guideExamples({ baseUrl: service.url, key: service.key }).keys()].toSorted(),
    );
  });
});
