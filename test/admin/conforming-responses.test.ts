import { afterAll, expect, test } from "bun:test";
import * as fc from "fast-check";
import { parseIpNetwork } from "../../src/runtime/ip-network.ts";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { RawConnection } from "../../trials/harness/http-connection.ts";
import { bearer } from "../bearer.ts";
import { useAdminService } from "./admin-service.ts";

/* Whatever clients and operators send, the responses to operators are as declared: `admin` compares each of them. */

const loopback = parseIpNetwork("127.0.0.1");
const service = await useAdminService({}, { trustedProxies: loopback ? [loopback] : [] });
const connections: RawConnection[] = [];
afterAll(() => connections.forEach(({ socket }) => socket.destroy()));

const READS = Object.values<AdminOperation>(ADMIN_OPERATIONS).flatMap(({ method, path }) =>
  method === "GET" && path !== "/session/proof" ? `/api${path.replace(/\{\w+\}/, "1")}` : [],
);

async function readEverything(): Promise<void> {
  for (const path of READS) expect((await service.admin(path)).status, path).toBeLessThan(500);
}

const characters = (ranges: readonly (readonly [number, number])[]) => {
  const codes = ranges.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
  return fc.constantFrom(...codes.map((code) => String.fromCharCode(code)));
};
const text = (unit: fc.Arbitrary<string>, maxLength: number, minLength = 0) =>
  fc.string({ unit, minLength, maxLength });

const token = characters([
  [0x41, 0x5a],
  [0x61, 0x7a],
  [0x21, 0x21],
  [0x23, 0x27],
  [0x7c, 0x7c],
]);
const visible = characters([[0x21, 0x7e]]);
/** What a field value may have, and often what counts as white space. */
const fieldCharacter = fc.oneof(
  fc.constantFrom(" ", "\t", "\x85", "\xa0"),
  characters([
    [0x20, 0x7e],
    [0x80, 0xff],
  ]),
);
const fieldValue = fc.oneof(
  text(fc.constantFrom(" ", "\t", "\xa0"), 3),
  text(fieldCharacter, 300),
  fc.constantFrom("pet_live_", "pet_live_x", `${"x".repeat(195)}pet_admin_x`, "1.2.3.4", "::1, nonsense"),
);

/** Texts as JSON: of every plane, blank, with control characters, and lone surrogates. */
const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 120 }),
  text(fc.constantFrom(" ", "\u00a0", "\u2028", "\ufeff", "\u0000", "\n", "\ud800", "x"), 3),
  text(fc.constantFrom("x", "\u{1f415}", "\u0301"), 110, 90),
);
const time = fc.oneof(
  fc.constantFrom("9999-12-31T23:59:59-12:00", "0000-01-01T00:00:00+12:00", "9999-12-31T23:59:59.999999999Z"),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
);

const clientRequest = fc.record({
  method: fc.oneof(fc.constantFrom("GET", "POST", "PATCH", "HEAD", "OPTIONS"), text(token, 40, 1)),
  path: fc.oneof(
    fc.constantFrom("/v1/pets", "/v1/pets/1", "/v1/store/orders", "/v1/store/orders/1", "/docs", "/"),
    text(visible, 300).map((rest) => `/${rest.replaceAll("#", "")}`),
  ),
  headers: fc.dictionary(
    fc.constantFrom("User-Agent", "X-Request-Id", "X-Forwarded-For", "Idempotency-Key", "traceparent"),
    fieldValue,
  ),
  body: fc.oneof(
    fc.record({ name: anyText, categoryId: fc.maxSafeInteger() }).map((pet) => JSON.stringify(pet)),
    fc.constantFrom('{"petId":1}', '{"status":"cancelled"}', ""),
  ),
});

test("whatever clients send", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(clientRequest, { minLength: 20, maxLength: 40 }), async (requests) => {
      for (const { method, path, headers, body } of requests) {
        if (method === "CONNECT") continue;
        let connection = connections.at(-1);
        if (connection === undefined || connection.isClosed)
          connections.push((connection = new RawConnection(Number(new URL(service.url).port))));
        const fields = { Host: "a", ...bearer(service.key), ...headers };
        const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
        const bytes = Buffer.from(body).toString("latin1");
        const framing = `Content-Type: application/json\r\nContent-Length: ${bytes.length}\r\n`;
        await connection.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}${framing}\r\n${bytes}`);
        await connection.response(method);
      }
      await readEverything();
    }),
    { numRuns: 30 },
  );
}, 60_000);

/** What a body needs, and any values of its other fields. */
const keyFields = fc.record(
  {
    name: anyText,
    plan: fc.constantFrom("free", "pro", "enterprise"),
    owner: anyText,
    notes: anyText,
    labels: fc.array(anyText, { maxLength: 4 }),
    limits: fc.constant({ perMinute: 1, perDay: 1_000_000_000 }),
    expiresAt: fc.oneof(time, fc.constant(null)),
  },
  { requiredKeys: ["name", "plan"] },
);
const operatorRequest = fc.oneof(
  fc.record({ request: fc.constantFrom("POST /api/keys", "PATCH /api/keys/1"), body: keyFields }),
  fc.record({
    request: fc.constantFrom("POST /api/pets", "PATCH /api/pets/1"),
    body: fc.record({ name: anyText, categoryId: fc.integer() }),
  }),
  fc.record({
    request: fc.constant("POST /api/operators"),
    body: fc.record({ name: anyText, role: fc.constant("viewer") }),
  }),
);
const query = fc.dictionary(
  fc.constantFrom("search", "owner", "label", "address", "requestId", "operator", "code"),
  anyText,
);

test("whatever operators send", async () => {
  const some = fc.array(operatorRequest, { minLength: 20, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(some, query, time, async (requests, texts, at) => {
      for (const { request, body } of requests)
        expect((await service.admin(request, { body })).status).toBeLessThan(500);
      await readEverything();
      const found = new URLSearchParams(texts);
      for (const path of ["/api/keys", "/api/pets", "/api/requests", "/api/audit"])
        await service.admin(`${path}?${found}`);
      const period = new URLSearchParams([["since", at]]);
      const ending = new URLSearchParams([["until", at]]);
      for (const path of ["/api/usage", "/api/keys/1/usage", "/api/audit", "/api/requests"])
        for (const search of [period, ending])
          expect((await service.admin(`${path}?${search}`)).status).toBeLessThan(500);
    }),
    { numRuns: 20 },
  );
}, 60_000);
