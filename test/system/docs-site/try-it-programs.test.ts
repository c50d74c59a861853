import { expect, test } from "bun:test";
import { programsOf } from "../../../src/docs-site/browser/programs.ts";
import { requestOf } from "../../../src/docs-site/browser/request.ts";
import { tryItOperation } from "../../../src/docs-site/fields.ts";
import { only, outputOf } from "./example-runner.ts";

const createPet = tryItOperation("createPet");
const listPets = tryItOperation("listPets");
const updateOrder = tryItOperation("updateOrder");
const KEY = "pet_live_0123456789";

test.each(["curl", "typescript", "fetch", "python"] as const)(
  "%s sends the same request, whatever the fields contain",
  async (language) => {
    const received: { method: string; path: string; headers: Headers; body: string }[] = [];
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        const { pathname, search } = new URL(request.url);
        const { method, headers } = request;
        received.push({ method, path: pathname + search, headers, body: await request.text() });
        return Response.json(method === "GET" ? ["ok"] : { ok: "ok" });
      },
    });
    const origin = { baseUrl: `${server.url.origin}/v1`, key: KEY };
    const name = 'O\'Hara $HOME `id` "quoted" \\ 🐈';
    const operations = [
      { operation: createPet, values: { name, categoryId: "7", "Idempotency-Key": "it's-$1" } },
      { operation: createPet, values: { name, categoryId: "9007199254740993" } },
      { operation: updateOrder, values: { orderId: "3", status: "completed", "If-Match": '"a"' } },
      { operation: listPets, values: { limit: "20", status: "it's" } },
      { operation: listPets, values: { id: "1, 2", status: "sold", "If-None-Match": '"a"' } },
    ];
    for (const { operation, values } of operations) {
      const request = requestOf({ ...origin, operation, values });
      const program = only(language, programsOf({ ...origin, operation, values }));
      expect(await outputOf({ ...program, key: KEY })).toContain("ok");
      const got = received.at(-1);
      expect(got?.method).toBe(operation.method);
      expect(got?.path).toBe(request.url.pathname + request.url.search);
      expect(compact(got?.body ?? "")).toBe(compact(request.body ?? ""));
      for (const [header, value] of request.headers) expect(got?.headers.get(header)).toBe(value);
    }
  },
);

test("TypeScript sends If-Match by the option of the method", () => {
  const values = { orderId: "3", status: "cancelled", "If-Match": '"a"' };
  const programs = programsOf({ baseUrl: "http://127.0.0.1/v1", operation: updateOrder, values });
  expect(only("typescript", programs).code).toContain(`orders.cancel(3, { ifMatch: '"a"' })`);
});

/** Python writes characters beyond ASCII as JSON escapes, and spaces. */
function compact(json: string): string {
  return json
    .replace(/(?<=[,:{\d"])\s+(?=["\d}])/g, "")
    .replace(/(?:\\u[0-9a-f]{4})+/g, (escapes) => JSON.parse(`"${escapes}"`));
}
