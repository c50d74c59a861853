import { expect, test } from "bun:test";
import {
  type Header,
  type HttpRequest,
  type HttpResponse,
  sendOnce,
} from "../../../trials/harness/http-connection.ts";
import { bearer, JSON_BODY, PUBLIC_URL, type Setup } from "./requests.ts";

const REX = '{"name":"Rex","categoryId":9007199254740993,"status":"available"}';

/** Set by each hop, or different in each response. */
const HOP_BY_HOP = new Set(["connection", "keep-alive", "date", "server", "x-request-id"]);
const RATE_LIMIT = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"];

/** What must be the same; of rate-limit headers, that they are numbers. */
function comparable({ status, headers, body }: HttpResponse) {
  const endToEnd = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name));
  const compared = endToEnd.map(([name, value]) => [
    name,
    RATE_LIMIT.includes(name) && /^\d+$/.test(value) ? "#" : value,
  ]);
  return { status, headers: Object.fromEntries(compared.toSorted()), body };
}

/** Responses through the load balancer have the same headers and the same bytes as those of a server. */
export function unchangedResponseTests({ fleet, balancer, key }: Setup): void {
  const direct = (request: HttpRequest) => sendOnce(fleet.ports[0] ?? 0, request);
  const through = (request: HttpRequest) => sendOnce(balancer.port, request);
  const withKey = (request: HttpRequest): HttpRequest => ({
    ...request,
    headers: [bearer(key), ...(request.headers ?? [])],
  });
  const post = (body: string, ...headers: Header[]) =>
    withKey({ method: "POST", path: "/v1/pets", headers: [JSON_BODY, ...headers], body });

  async function expectSame(request: HttpRequest, status: number): Promise<HttpResponse> {
    const response = await through(request);
    expect(comparable(response)).toEqual(comparable(await direct(request)));
    expect(response.status).toBe(status);
    if (request.path.startsWith("/v1")) {
      expect(RATE_LIMIT.slice(0, 3).filter((name) => !/^\d+$/.test(response.headers[name] ?? ""))).toEqual(
        [],
      );
    }
    return response;
  }

  test("201, 200, HEAD and 304 are unchanged, and Link and Location have the public address", async () => {
    expect((await through(post(REX))).headers.location).toStartWith(`${PUBLIC_URL}/pets/`);
    await through(post(REX));
    const repeated = post(REX, ["Idempotency-Key", "once"]);
    await direct(repeated);
    expect((await expectSame(repeated, 201)).headers["idempotent-replayed"]).toBe("true");

    const list = { path: "/v1/pets?limit=1" };
    const { headers } = await expectSame(withKey(list), 200);
    expect(headers.link).toStartWith(`<${PUBLIC_URL}/pets?`);
    const head = await expectSame(withKey({ ...list, method: "HEAD" }), 200);
    expect(head.headers["content-length"]).toBe(headers["content-length"]);
    await expectSame(withKey({ ...list, headers: [["If-None-Match", headers.etag ?? ""]] }), 304);
    await expectSame(withKey({ path: "/v1/pets/1" }), 200);
  });

  test("errors are unchanged: 400, 401, 404, 405, 415, 429", async () => {
    await expectSame(post("{"), 400);
    await expectSame({ path: "/v1/pets" }, 401);
    for (const path of ["/v1/pets/0", "/v1/nowhere", "/v1/pets/%31%2f", "/v1//pets", "/v1/pets/01"]) {
      await expectSame(withKey({ path }), 404);
    }
    expect((await expectSame(withKey({ method: "DELETE", path: "/v1/pets" }), 405)).headers.allow).toContain(
      "GET",
    );
    await expectSame(withKey({ method: "OPTIONS", path: "/v1/pets" }), 204);
    const text: Header = ["Content-Type", "text/plain"];
    await expectSame(withKey({ method: "POST", path: "/v1/pets", headers: [text], body: REX }), 415);
    const { key: small } = await fleet.createKey("enterprise", "--per-minute", "1", "--per-day", "1000");
    const limited = { path: "/v1/pets", headers: [bearer(small)] };
    await through(limited);
    expect((await expectSame(limited, 429)).headers["retry-after"]).toMatch(/^\d+$/);
  });

  test("413 comes from the server, for bodies of more than 16 KiB", async () => {
    for (const size of [16_385, 100_000]) {
      expect((await expectSame(post("x".repeat(size)), 413)).body).toContain('"body_too_large"');
    }
    expect((await through(post("x".repeat(16_384)))).status).toBe(400);
  });

  test("pages outside the API are unchanged", async () => {
    for (const path of ["/healthz", "/openapi.json", "/docs"]) await expectSame({ path }, 200);
  });
}
