import { beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { toJson } from "../../src/api/json.ts";
import { createClock } from "../../src/clock.ts";
import type { Context } from "../../src/cli/command.ts";
import { NO_ACTIVITY } from "../../src/domain/servers.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { bearer } from "../bearer.ts";
import { cleanUpAfterAll, InProcessCli, type InProcessServer, cliDirectory, wrongUsage } from "./cli.ts";
import { until } from "../timing.ts";

cleanUpAfterAll();

const TOKEN = "petadmin_0123456789abcdefghijklmnopqrstuvwxyz";
const cli = new InProcessCli();
/** The server has the clock of the machine. */
const run = (line: string, context: Partial<Context> = {}) =>
  cli.run(line, {}, { clock: createClock(), ...context });
let server: InProcessServer;
let elsewhere: string[];

async function send(path: string, id: string, secret = server.secret): Promise<void> {
  await fetch(server.url + path, { headers: { ...bearer(secret), "X-Request-Id": id } });
}

beforeAll(async () => {
  const tokenFile = join(cliDirectory(), "token");
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  server = await cli.serve(["--admin-token-file", tokenFile]);
  elsewhere = ["--server", new URL(server.adminUrl).origin, "--admin-token-file", tokenFile];
  await send("/pets", "first");
  await send("/pets/7", "second");
  await send("/pets", "third", "pet_live_wrong");
});

test("requests are listed by the server of this data directory, newest first", async () => {
  const { out } = await run("requests");
  const [header, ...lines] = out.trimEnd().split("\n");
  expect(header).toMatch(/^TIME +STATUS +CODE +MS +KEY +REQUEST +REQUEST ID +ADDRESS +USER AGENT +MESSAGE$/);
  expect(lines.map((line) => line.split(/ {2,}/).toSpliced(3, 1).slice(1, 6))).toEqual([
    ["401", "invalid_api_key", "-", "GET /v1/pets", "third"],
    ["404", "pet_not_found", "1 first key", "GET /v1/pets/7", "second"],
    ["200", "-", "1 first key", "GET /v1/pets", "first"],
  ]);
  const messages = lines.map((line) => line.split(/ {2,}/).at(-1));
  expect(messages).toEqual([
    "Invalid API key. It is mistyped or revoked, or was replaced when the key was rotated.",
    "Pet 7 does not exist.",
    "-",
  ]);
});

test("--json has identifiers as the server writes them, to the last digit", async () => {
  const headers = bearer(TOKEN);
  const response = await fetch(`${new URL(server.adminUrl).origin}/api/requests`, { headers });
  const digits = (text: string) => Array.from(text.matchAll(/"id": ?(\d{19,}),/g), ([, id]) => id);
  const written = digits(await response.text());
  expect(written).toHaveLength(3);
  expect(digits((await run("requests --json")).out)).toEqual(written);
  expect(digits(await new InProcessCli().out(["requests", "--json", ...elsewhere]))).toEqual(written);
});

test.each([
  ["--key 1 --status 404", ["second"]],
  ["--status 4xx", ["third", "second"]],
  ["--code invalid_api_key", ["third"]],
  ["--operation listPets", ["first"]],
  ["--request-id first", ["first"]],
  ["--address 192.0.2.1", []],
  ["--slower-than 1h", []],
  ["--limit 1", ["third"]],
  ["--since 1h", ["third", "second", "first"]],
  ["--since 2h --until 1h", []],
])("%s", async (flags, expected) => {
  const line = `requests ${flags} --json`;
  const { out: here } = await run(line);
  const listed: { requestId: string }[] = JSON.parse(here.replace(/warning: .*\n/, ""));
  expect(listed.map(({ requestId }) => requestId)).toEqual(expected);
  expect(await new InProcessCli().out([...line.split(" "), ...elsewhere])).toBe(here);
});

test("--limit says that more follow, and conditions that none meets say so", async () => {
  expect((await run("requests --limit 1")).out).toContain("warning: more requests follow; raise --limit");
  expect((await run("requests --key 99")).out).toStartWith("There are no such requests");
  for (const [flag, value, expected] of [
    ["--status", "6xx", "a status such as 429, or a class such as 5xx"],
    ["--code", "Rate limited", "an error code such as rate_limited"],
    ["--address", "shop", "an address such as 192.0.2.7 or 2001:db8::7"],
    ["--since", "yesterday", "a date such as 2026-11-01, a time such as"],
  ] as const)
    expect(await cli.run(["requests", flag, value], {}, { clock: createClock() })).toEqual(
      wrongUsage(expect.stringMatching(new RegExp(`^${flag} (is ".*"; it )?must be ${expected}`))),
    );
});

test("a server that is missing on one page is named, although the next page has requests of it", async () => {
  const [item] = JSON.parse((await run("requests --request-id first --json")).out);
  const servers = (problem: string | null) =>
    ["web-1", "web-2"].map((id) => ({ id, name: id, problem: id === "web-2" ? problem : null, since: null }));
  const first = {
    items: [{ ...item, id: 2, server: "web-1" }],
    nextCursor: "2",
    servers: servers("timeout"),
  };
  const second = { items: [{ ...item, id: 1, server: "web-2" }], nextCursor: null, servers: servers(null) };
  using fake = Bun.serve({
    port: 0,
    fetch: ({ url }) => Response.json(url.includes("cursor=") ? second : first),
  });
  const there = ["--server", fake.url.origin];
  const { out } = await new InProcessCli().run(["requests", "--json", ...there], { PETSTORE_TOKEN: TOKEN });
  expect(out.match(/"id": ?\d|warning: .*/g)).toEqual([
    '"id": 2',
    '"id": 1',
    "warning: without the requests of web-2: timeout",
  ]);
});

test("a table has a line for each request, and so has --follow, oldest first", async () => {
  const [item] = JSON.parse((await run("requests --request-id first --json")).out);
  const [at, address] = ["2026-11-15T12:00:00.000Z", "192.0.2.1"];
  const key = { keyId: 7, keyName: "a key with a name of 30 chars." };
  const message = "Not found.";
  const slow = {
    ...item,
    ...key,
    id: 3,
    at,
    address,
    userAgent: "curl",
    durationMs: 12_345.678,
    code: "pet_not_found",
    status: 404,
    message,
  };
  const fast = { ...slow, id: 2, durationMs: 9.99, code: null, status: 200, message: null };
  const unknown = { ...fast, id: 1, durationMs: 10, keyId: null, keyName: null, userAgent: null };
  let asked = 0;
  using fake = Bun.serve({
    port: 0,
    fetch: () =>
      ++asked === 3
        ? new Response(null, { status: 500 })
        : Response.json({ items: [slow, fast, unknown], nextCursor: null, servers: [] }),
  });
  const lines = async (...flags: string[]) =>
    (
      await new InProcessCli().run(["requests", "--server", fake.url.origin, ...flags], {
        PETSTORE_TOKEN: TOKEN,
      })
    ).out;
  expect(await lines())
    .toBe(`TIME                      STATUS  CODE           MS     KEY                     REQUEST       REQUEST ID  ADDRESS    USER AGENT  MESSAGE
${at}  404     pet_not_found  12346  7 a key with a name o…  GET /v1/pets  first       192.0.2.1  curl        Not found.
${at}  200     -              9.99   7 a key with a name o…  GET /v1/pets  first       192.0.2.1  curl        -
${at}  200     -              10     -                       GET /v1/pets  first       192.0.2.1  -           -
`);
  expect(await lines("--follow")).toBe(`${at} 200    10.00 ms  key -  GET /v1/pets  -  first
${at} 200     9.99 ms  key 7 a key with a name o…  GET /v1/pets  -  first
${at} 404 12345.68 ms  key 7 a key with a name o…  GET /v1/pets  pet_not_found  first  Not found.
`);
});

test("--follow prints the last requests, then new ones as they arrive, each once", async () => {
  let out = "";
  const print = async (text: string | Uint8Array) => {
    out += String(text);
    if (out.includes("fifth")) throw new Error("seen");
  };
  const following = run("requests --follow --limit 2 --json", { print });
  await until(() => out.includes("third"), 5_000);
  await send("/pets", "fourth");
  await until(() => out.includes("fourth"), 5_000);
  await send("/pets", "fifth");
  await following.catch(() => {});
  const ids = out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).requestId);
  expect(ids).toEqual(["second", "third", "fourth", "fifth"]);
});

test("--follow names a server when it stops responding, and prints nothing again when it is back", async () => {
  const [item] = JSON.parse((await run("requests --request-id first --json")).out);
  const items = [2n, 1n].map((id) => Object.assign({}, item, { id, requestId: `of-${id}`, server: `${id}` }));
  const other = (problem: string | null) => ({ id: "2", name: "web-2", problem, since: null });
  let asked = 0;
  using fake = Bun.serve({
    port: 0,
    fetch() {
      if (++asked === 4) return new Response(null, { status: 500 });
      const answer = asked === 2 ? [items.slice(1), other("timeout")] : [items, other(null)];
      return new Response(toJson({ items: answer[0], nextCursor: null, servers: [answer[1]] }), {
        headers: { "Content-Type": "application/json" },
      });
    },
  });
  const there = ["--server", fake.url.origin];
  const { out } = await new InProcessCli().run(["requests", "--follow", "--json", ...there], {
    PETSTORE_TOKEN: TOKEN,
  });
  expect(out.match(/of-\d|warning: .*/g)).toEqual([
    "of-1",
    "of-2",
    "warning: without the requests of web-2: timeout",
  ]);
});

test("--follow warns of requests that it does not print, and of none that it has printed", async () => {
  const [item] = JSON.parse((await run("requests --request-id first --json")).out);
  const at = "2026-11-16T12:00:00.000Z";
  const servers = [{ id: "1", name: "web-1", problem: null, since: "2026-11-16T11:00:00.000Z" }];
  let count = 9_000;
  const growth = [3_000, 15_000];
  using fake = Bun.serve({
    port: 0,
    fetch({ url }) {
      const { searchParams } = new URL(url);
      const cursor = searchParams.get("cursor");
      // Each look for new requests begins without a cursor.
      if (cursor === null && searchParams.has("since")) {
        const more = growth.shift();
        if (more === undefined) return new Response(null, { status: 500 });
        count += more;
      }
      const newest = cursor === null ? count : Number(cursor);
      const length = Math.min(Number(searchParams.get("limit")), newest);
      const items = Array.from({ length }, (_, i) => ({ ...item, id: newest - i, at, server: "1" }));
      const rest = newest - length;
      return Response.json({ items, nextCursor: rest === 0 ? null : `${rest}`, servers });
    },
  });
  const printed: number[] = [];
  const print = async (text: string | Uint8Array) =>
    void printed.push(String(text).trimEnd().split("\n").length);
  const there = ["--server", fake.url.origin];
  const line = ["requests", "--follow", "--json", "--limit", "10000", ...there];
  const { out } = await new InProcessCli().run(line, { PETSTORE_TOKEN: TOKEN }, { print });
  expect(printed).toEqual([9_000, 3_000, 10_000]);
  expect(out.match(/warning: .*/g)).toEqual([
    "warning: there are more than 10000 new requests; some are not shown",
  ]);
});

test("a row that this release cannot read hides no other, and is counted once", async () => {
  const [item] = JSON.parse((await run("requests --request-id first --json")).out);
  const items = [{ ...item, id: 2, method: "\u00a0" }, item];
  let asked = 0;
  using fake = Bun.serve({
    port: 0,
    fetch: () =>
      ++asked === 3
        ? new Response(null, { status: 500 })
        : Response.json({ items, nextCursor: null, servers: [] }),
  });
  const there = ["--server", fake.url.origin];
  const { out } = await new InProcessCli().run(["requests", "--follow", "--json", ...there], {
    PETSTORE_TOKEN: TOKEN,
  });
  const warning = "warning: 1 row is left out: this release cannot read it";
  expect(out.match(/"requestId":"\w+"|warning: .*/g)).toEqual([warning, '"requestId":"first"']);
});

test("without a server, and just after one was killed, the command says so and leaves no question", async () => {
  const other = new InProcessCli();
  const none =
    /^no server runs in production \(.*\); start it with petstore serve, or name another one with --server$/;
  expect(await other.err("requests")).toMatch(none);
  await other.run("keys create --name a --plan free");
  expect(await other.err("requests")).toMatch(none);
  const stores = openSqlite(join(other.dataDir, "production.db"));
  const report = { ...NO_ACTIVITY, id: "killed", name: hostname(), version: "1", startedAt: 0 };
  await stores.serverReports.report("killed", JSON.stringify(report));
  expect(await other.err("requests")).toMatch(
    /^no server of production .* answers, since it was killed or stands still; .* --server$/,
  );
  await until(async () => !(await stores.keys.changesSince(0)).hasQuestions, 5_000);
  await stores.close();
});
