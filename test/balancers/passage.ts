import { expect, test } from "bun:test";
import { PUBLIC_URL } from "./fleet.ts";
import { bearer, JSON_BODY } from "./requests.ts";
import type { Scene } from "./suite.ts";
import { type Answer, askOnce, type Asking, type Header } from "./wire.ts";

const REX = '{"name":"Rex","categoryId":9007199254740993,"status":"available"}';

/** Set by each hop for itself, or different from one answer to the next. */
const OWN = new Set(["connection", "keep-alive", "date", "server"]);
const COUNTED = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"];

/** What must be the same; of what counts, that it is there and a number. */
function essence({ status, headers, body }: Answer) {
  const kept = Object.entries(headers).filter(([name]) => !OWN.has(name));
  const shown = kept.map(([name, value]) => [
    name,
    COUNTED.includes(name) && /^\d+$/.test(value) ? "#" : value,
  ]);
  return { status, headers: Object.fromEntries(shown.toSorted()), body };
}

/** Answers of an instance are the same, header for header and byte for byte, through the balancer. */
export function passageTests(scene: () => Scene): void {
  const direct = (asking: Asking) => askOnce(scene().fleet.ports[0] ?? 0, asking);
  const through = (asking: Asking) => askOnce(scene().balancer.port, asking);
  const own = (asking: Asking): Asking => ({
    ...asking,
    headers: [bearer(scene().fleet.key), ...(asking.headers ?? [])],
  });
  const post = (body: string, ...headers: Header[]) =>
    own({ method: "POST", path: "/v1/pets", headers: [JSON_BODY, ...headers], body });

  async function expectSame(asking: Asking, status: number): Promise<Answer> {
    const answer = await through(asking);
    expect(essence(answer)).toEqual(essence(await direct(asking)));
    expect(answer.status).toBe(status);
    if (asking.path.startsWith("/v1")) {
      expect(COUNTED.slice(0, 3).filter((name) => !/^\d+$/.test(answer.headers[name] ?? ""))).toEqual([]);
    }
    return answer;
  }

  test("201, 200, HEAD and 304 pass unchanged, and Link and Location carry the public address", async () => {
    expect((await through(post(REX))).headers.location).toStartWith(`${PUBLIC_URL}/pets/`);
    await through(post(REX));
    const repeated = post(REX, ["Idempotency-Key", "once"]);
    await direct(repeated);
    expect((await expectSame(repeated, 201)).headers["idempotent-replayed"]).toBe("true");

    const list = { path: "/v1/pets?limit=1" };
    const { headers } = await expectSame(own(list), 200);
    expect(headers.link).toStartWith(`<${PUBLIC_URL}/pets?`);
    const head = await expectSame(own({ ...list, method: "HEAD" }), 200);
    expect(head.headers["content-length"]).toBe(headers["content-length"]);
    await expectSame(own({ ...list, headers: [["If-None-Match", headers.etag ?? ""]] }), 304);
    await expectSame(own({ path: "/v1/pets/1" }), 200);
  });

  test("refusals pass unchanged: 400, 401, 404, 405, 415, 429", async () => {
    await expectSame(post("{"), 400);
    await expectSame({ path: "/v1/pets" }, 401);
    for (const path of ["/v1/pets/0", "/v1/nowhere", "/v1/pets/%31%2f", "/v1//pets", "/v1/pets/01"]) {
      await expectSame(own({ path }), 404);
    }
    expect((await expectSame(own({ method: "DELETE", path: "/v1/pets" }), 405)).headers.allow).toContain(
      "GET",
    );
    await expectSame(own({ method: "OPTIONS", path: "/v1/pets" }), 204);
    const text: Header = ["Content-Type", "text/plain"];
    await expectSame(own({ method: "POST", path: "/v1/pets", headers: [text], body: REX }), 415);
    const spent = { path: "/v1/pets", headers: [bearer(await scene().fleet.newKey(1))] };
    await through(spent);
    expect((await expectSame(spent, 429)).headers["retry-after"]).toMatch(/^\d+$/);
  });

  test("413 is the service's own, for bodies of more than 64 KiB", async () => {
    for (const size of [65_537, 100_000]) {
      expect((await expectSame(post("x".repeat(size)), 413)).body).toContain('"body_too_large"');
    }
    expect((await through(post("x".repeat(65_536)))).status).toBe(400);
  });

  test("the pages beside the interface pass unchanged", async () => {
    for (const path of ["/healthz", "/openapi.json", "/docs"]) await expectSame({ path }, 200);
  });
}
