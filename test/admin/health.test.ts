import { expect, test } from "bun:test";
import { type ReadinessChecks, readyResponse, sharedChecks } from "../../src/admin/health.ts";
import type { Request } from "../../src/http1/index.ts";

const ready = (checks: ReadinessChecks, query = "") => readyResponse({ query } as Request, checks);

test("a check that throws, rejects or is false makes the server not ready, and is named", async () => {
  const { status, body } = await ready({
    fine: () => true,
    throws: () => {
      throw new Error("gone");
    },
    rejects: () => Promise.reject(new Error("gone")),
    false: async () => false,
  });
  expect(status).toBe(503);
  expect(body).toBe("[+]fine ok\n[-]throws failed\n[-]rejects failed\n[-]false failed\nnot ready\n");
});

test("a check that never ends is given up after 0.8 seconds, before a probe of a second is", async () => {
  const startedAt = performance.now();
  const { status, body } = await ready({ stuck: () => new Promise(() => {}), fine: () => true });
  expect(performance.now() - startedAt).toBeLessThan(1_000);
  expect({ status, body }).toEqual({ status: 503, body: "[-]stuck failed\n[+]fine ok\nnot ready\n" });
});

test("requests at the same time share one check of the database, and one that never ends is begun anew", async () => {
  let begun = 0;
  const checks = sharedChecks({ database: () => (begun++, new Promise(() => {})) });
  const statuses = await Promise.all(Array.from({ length: 1_000 }, () => ready(checks)));
  expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([503]));
  expect(begun).toBe(1);
  await ready(checks);
  expect(begun).toBe(2);
});

test("a check that is excluded is not run", async () => {
  const { status, body } = await ready({ fine: () => true, gone: () => false }, "exclude=gone");
  expect({ status, body }).toEqual({ status: 200, body: "ok\n" });
});
