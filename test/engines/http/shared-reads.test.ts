import { afterAll, beforeAll, expect, test } from "bun:test";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { type Service, startService } from "../../service.ts";

let servers: readonly [Service, Service];
beforeAll(async () => {
  const databaseUrl = await postgresUrl();
  servers = [await startService({ databaseUrl }), await startService({ databaseUrl })];
}, 30_000);
afterAll(() => Promise.all(servers.map((server) => server.stop())));

const ROUNDS = 100;
const READERS = 6;
const newPet = (name: string) => ({ method: "POST", path: "/pets", body: { name, categoryId: 1 } });

test("lists that share a response show every pet whose create was acknowledged before, on both servers, and a 304 is about what is current", async () => {
  let newest = 0;
  const over = new AbortController();
  /** Equal requests all the time, so that there is always a response to share. */
  const readers = servers.flatMap((server) =>
    Array.from({ length: READERS }, async () => {
      let etag = "";
      let seen = 0;
      const read = async () => {
        const before = newest;
        const headers = { "If-None-Match": etag };
        const { status, headers: received, text } = await server.call({ path: "/pets?limit=100", headers });
        if (status === 200)
          seen = Math.max(0, ...[...text.matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id)));
        etag = received.get("etag") ?? "";
        expect(seen).toBeGreaterThanOrEqual(Math.min(before, 100));
      };
      do await read();
      while (!over.signal.aborted);
    }),
  );
  for (let round = 0; round < ROUNDS; round++) {
    const { status, text } = await (servers[round % 2] ?? servers[0]).call(newPet(`${round}`));
    expect(status).toBe(201);
    newest = Number(/"id":(\d+)/.exec(text)?.[1]);
    const lists = servers.flatMap((server) =>
      Array.from({ length: 3 }, () => server.call({ path: "/pets?limit=100" })),
    );
    for (const list of await Promise.all(lists)) expect(list.text).toContain(`{"id":${newest},`);
  }
  over.abort();
  await Promise.all(readers);
}, 60_000);

test("each of the requests that share a response has its own usage, and the same page with another query its own link", async () => {
  const [server] = servers;
  const { secret } = await server.newKey({ limits: { perMinute: 1_000, perDay: 1_000 } });
  const paths = Array.from({ length: 30 }, (_, i) => (i % 2 === 0 ? "/pets?limit=20" : "/pets"));
  const responses = await Promise.all(paths.map((path) => server.call({ path, key: secret })));
  const remaining = responses.map(({ headers }) => Number(headers.get("x-ratelimit-remaining")));
  expect(new Set(remaining).size).toBe(30);
  for (const [i, { headers }] of responses.entries()) {
    expect(headers.get("link")?.includes("limit=20")).toBe(i % 2 === 0);
  }
});
