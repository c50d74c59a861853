import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { useAdminService } from "./admin-service.ts";

const service = await useAdminService();

/** Those that a token is not needed for would sign in and out. */
const OPERATIONS = Object.values<AdminOperation>(ADMIN_OPERATIONS).filter(
  ({ needsNoToken }) => !needsNoToken,
);

const IDENTIFIERS = ["1", "2", "0", "-1", "01", "abc", "%00", "9223372036854775808", "1.0", "%ff"];
const TIME = "2026-11-15T00:00:00Z";
const TEXTS = ["", " ", "\u0000", "é🐕", TIME, ..."free asc day key:1 1 -1 % & null".split(" ")];
const VALUES = [null, true, 0, -1, 1.5, 1e300, "", "x", TIME, [], {}, ["x"], { perMinute: 1 }];

/** A request for an operation: its own parameters and fields with any values. */
const request = fc.constantFrom(...OPERATIONS).chain((operation) => {
  const { method, path, query = {}, body } = operation;
  const fields = <T>(names: readonly string[], value: fc.Arbitrary<T>) =>
    fc.dictionary(fc.constantFrom(...names, "other"), value, { maxKeys: 4 });
  return fc.record({
    method: fc.constant(method),
    path: fc.constantFrom(...IDENTIFIERS).map((id) => `/api${path.replace(/\{\w+\}/, id)}`),
    query: fields(Object.keys(query), fc.constantFrom(...TEXTS)),
    body: body
      ? fc.oneof(fields(body.names, fc.constantFrom(...VALUES)), fc.jsonValue())
      : fc.constant(undefined),
  });
});

test("no request of an operator causes an internal error, and every response is as declared", async () => {
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, body }) => {
      const parameters = new URLSearchParams(query);
      const { status } = await service.admin({
        method,
        path: `${path}?${parameters}`,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      expect(status).toBeLessThan(500);
    }),
    { numRuns: 1_000 },
  );
}, 60_000);
