import { expect, test } from "bun:test";
import { curlText, requestOf } from "../../../src/docs-site/browser/request.ts";
import { tryItData } from "../../../src/docs-site/fields.ts";
import { DEFAULT_SETTINGS } from "../../../docs/generate.ts";

const { operation: createPet } = tryItData("createPet", "/docs", DEFAULT_SETTINGS);
const { operation: listPets } = tryItData("listPets", "/docs", DEFAULT_SETTINGS);
const KEY = "pet_live_0123456789";

test("curl sends the same request, whatever the fields contain", async () => {
  const received: { method: string; path: string; headers: Headers; body: string }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      received.push({ method, path: pathname + search, headers, body: await request.text() });
      return new Response("ok");
    },
  });
  try {
    const origin = { baseUrl: `${server.url.origin}/v1`, key: KEY };
    const name = 'O\'Hara $HOME `id` "quoted" \\ 🐈';
    const operations = [
      { operation: createPet, values: { name, categoryId: "7", "Idempotency-Key": "it's-$1" } },
      { operation: { ...createPet, method: "PATCH" as const }, values: { name, categoryId: "7" } },
      { operation: listPets, values: { limit: "20", status: "it's" } },
    ];
    for (const { operation, values } of operations) {
      const request = requestOf({ ...origin, operation, values });
      const child = Bun.spawn(["bash", "-c", curlText(request)], {
        env: { ...process.env, KEY },
        stdout: "pipe",
      });
      expect(await new Response(child.stdout).text()).toContain("200 OK");
      const got = received.at(-1);
      expect(got?.method).toBe(operation.method);
      expect(got?.path).toBe(request.url.pathname + request.url.search);
      expect(got?.body).toBe(request.body ?? "");
      for (const [header, value] of request.headers) expect(got?.headers.get(header)).toBe(value);
    }
  } finally {
    await server.stop(true);
  }
});
