import { afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "bun:test";
import { chmodSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessLine, openAccessLog, openLogFile } from "../../src/observe/access-log.ts";
import { Unavailable } from "../../src/api/errors.ts";
import { internalErrorResponse } from "../../src/api/dispatch.ts";
import { type RequestObserver, RequestRecord } from "../../src/observe/request-metrics.ts";
import type { Request, Response } from "../../src/http1/index.ts";
import { HeaderFields } from "../../src/http1/request-head.ts";
import { ACCESS_LOG_FIELDS, type AccessLogField } from "../../src/domain/constants.ts";
import type { Decision } from "../../src/domain/rate-limit.ts";
import { silentLog } from "../../src/observe/log.ts";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { type Service, startService } from "../service.ts";

const folder = temporaryFolder("access-log");

const linesOf = (file: string): Record<string, unknown>[] =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("the access log of a server", () => {
  const file = join(folder, "server.log");
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  let service: Service;
  let lines: Record<string, unknown>[];

  beforeAll(async () => {
    service = await startService({ accessLog: file });
    const headers = {
      "X-Request-Id": 'mine"\\',
      "User-Agent": "shop/1.0",
      traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
    };
    await service.call({ path: "/pets?limit=7&cursor=c2VjcmV0", headers });
    await service.call({ method: "POST", path: "/pets", body: { name: "Secret Rex", categoryId: 1 } });
    await service.call({ method: "HEAD", path: "/pets/1" });
    await service.call({ path: "/pets", key: "pet_live_invalid" });
    await fetch(new URL("/healthz?token=secret", service.url));
    await fetch(new URL(`/nothing/${service.key}`, service.url));
    await service.stop();
    lines = linesOf(file);
  });

  test("has a line for each request", () => {
    const usual = {
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      requestId: expect.stringMatching(/^[\w-]+$/),
      address: "127.0.0.1",
      userAgent: expect.stringMatching(/^Bun/),
      durationMs: expect.any(Number),
      bytes: expect.any(Number),
    };
    const path = "/v1/pets";
    const unrouted = { ...usual, keyId: null, method: "GET", operation: null };
    expect(lines).toEqual([
      {
        ...usual,
        requestId: 'mine"\\',
        traceId,
        keyId: 1,
        method: "GET",
        path,
        operation: "listPets",
        status: 400,
        errorCode: "invalid_parameter",
        userAgent: "shop/1.0",
      },
      { ...usual, keyId: 1, method: "POST", path, operation: "createPet", status: 201, bytes: 43 },
      { ...usual, keyId: 1, method: "HEAD", path: `${path}/1`, operation: "getPet", status: 200, bytes: 0 },
      { ...unrouted, path, status: 401, errorCode: "invalid_api_key" },
      { ...unrouted, path: "/healthz", status: 200, bytes: 15 },
      { ...unrouted, path: "/nothing/pet_live_…", status: 404, errorCode: "not_found" },
    ]);
  });

  test("is for its owner alone, and has no secret, no body and no value of a query", () => {
    const text = readFileSync(file, "utf8");
    const secret = service.key.slice("pet_live_".length);
    for (const value of [secret, "pet_live_invalid", "Bearer", "Secret", "secret", "c2VjcmV0", "limit"]) {
      expect(text).not.toContain(value);
    }
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

const OK: Response = { status: 200, headerLines: "", body: "" };
const addressOf = () => "192.0.2.1";
const decision = {} as Decision;

function recordOf(changes: Partial<Request> = {}, fields = ""): RequestRecord {
  const headers = HeaderFields.parse(fields);
  return new RequestRecord({ method: "GET", path: "/", headers, ...changes } as Request, "id");
}

describe("a line", () => {
  const textOf = (record: RequestRecord) => accessLine(record, OK, { addressOf });
  const lineOf = (record: RequestRecord, body: Response["body"] = "") =>
    JSON.parse(accessLine(record, { ...OK, body }, { addressOf }));

  test("counts the bytes of the body, not its characters", () => {
    const bytesOf = (body: Response["body"]) => lineOf(recordOf(), body).bytes;
    expect([bytesOf("é"), bytesOf(new Uint8Array(9)), bytesOf(null)]).toEqual([2, 9, 0]);
  });

  test("has no key if the key could not be looked up", () => {
    expect(lineOf(Object.assign(recordOf(), { principal: new Unavailable("x") })).keyId).toBeNull();
  });

  test("has 20 characters of a longer method, and 200 of a longer path or user agent", () => {
    const long = "M".repeat(8_000);
    const line = lineOf(recordOf({ method: long, path: long }, `User-Agent: ${long}\r\n`));
    expect([line.method, line.path, line.userAgent]).toEqual(
      [20, 200, 200].map((length) => long.slice(0, length)),
    );
  });

  test("is printable ASCII, however strange the request is", () => {
    const userAgent = '\t"\\ \x80\x9b31m\xad\xff';
    const text = textOf(recordOf({ path: "/\x7f\x1b" }, `User-Agent: a${userAgent}\r\n`));
    expect(text).toMatch(/^[ -~]+\n$/);
    expect(JSON.parse(text)).toMatchObject({ path: "/\x7f\x1b", userAgent: `a${userAgent}` });
  });

  test("hides API keys, wherever they stand", () => {
    const text = textOf(
      recordOf({ path: "/pet_test_aB3d/x" }, "User-Agent: a pet_live_aB3d pet_live_x9Kq\r\n"),
    );
    expect(JSON.parse(text)).toMatchObject({ path: "/pet_test_…/x", userAgent: "a pet_live_… pet_live_…" });
  });

  test("lacks the fields that are left out", () => {
    const record = recordOf(
      {},
      `User-Agent: a\r\ntraceparent: 00-${"a".repeat(32)}-${"b".repeat(16)}-01\r\n`,
    );
    const namesWithout = (...omit: AccessLogField[]) =>
      Object.keys(JSON.parse(accessLine(record, internalErrorResponse(), { addressOf, omit })));
    const all = namesWithout();
    for (const field of ACCESS_LOG_FIELDS) {
      expect(all).toContain(field);
      expect(namesWithout(field)).toEqual(all.filter((name) => name !== field));
    }
    expect(namesWithout(...ACCESS_LOG_FIELDS)).toHaveLength(all.length - ACCESS_LOG_FIELDS.length);
  });
});

describe("requests that no rate limit bounds", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());
  const health = recordOf({ path: "/healthz" });
  const preflight = recordOf({ method: "OPTIONS", path: "/v1/pets" });
  const limited = Object.assign(recordOf(), { decision });

  const written = async (name: string, use: (observe: RequestObserver) => void) => {
    const file = join(folder, name);
    const accessLog = await openAccessLog({ file, addressOf, log: silentLog });
    use(accessLog.observe);
    await accessLog.close();
    return linesOf(file).map(({ method, path, status }) => `${method} ${path} ${status}`);
  };

  test("have one line a minute: health checks of any method and status, and preflights", async () => {
    const lines = await written("unlimited.log", (observe) => {
      for (let i = 0; i < 1_000; i++) {
        observe(health, i === 0 ? OK : { ...OK, status: 503 });
        observe(recordOf({ method: "POST", path: "/healthz" }), { ...OK, status: 405 });
        observe(preflight, { ...OK, status: 204 });
      }
      jest.advanceTimersByTime(59_999);
      observe(health, OK);
      jest.advanceTimersByTime(1);
      observe(health, { ...OK, status: 503 });
    });
    expect(lines).toEqual(["GET /healthz 200", "OPTIONS /v1/pets 204", "GET /healthz 503"]);
  });

  test("are the health checks and preflights of a server", async () => {
    jest.useRealTimers();
    const file = join(folder, "cors.log");
    const origin = "https://shop.example";
    const { url, stop } = await startService({ accessLog: file, corsOrigins: [origin] });
    for (let i = 0; i < 3; i++) {
      await fetch(new URL("/healthz", url));
      const headers = { Origin: origin, "Access-Control-Request-Method": "GET" };
      await fetch(`${url}/pets`, { method: "OPTIONS", headers });
    }
    await stop();
    expect(linesOf(file).map(({ path }) => path)).toEqual(["/healthz", "/v1/pets"]);
  });

  test("are neither those that the limiter decided nor those that it failed to decide", async () => {
    const lines = await written("limited.log", (observe) => {
      for (let i = 0; i < 2; i++) {
        observe(limited, OK);
        observe(recordOf(), { ...OK, status: 503 });
      }
    });
    expect(lines).toEqual(["GET / 200", "GET / 503", "GET / 200", "GET / 503"]);
  });
});

describe("the file", () => {
  const written = async (path: string, ...texts: string[]) => {
    const output = await openLogFile(path);
    for (const text of texts) await output.write(Buffer.from(text));
    return output;
  };

  test("is appended to, and one that exists keeps its mode", async () => {
    const path = join(folder, "existing.log");
    writeFileSync(path, "before\n");
    chmodSync(path, 0o640);
    await (await written(path, "after\n")).close();
    expect(readFileSync(path, "utf8")).toBe("before\nafter\n");
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  test("that was renamed or removed is created again, and one that was truncated goes on at its beginning", async () => {
    const path = join(folder, "rotated.log");
    const output = await written(path, "first\n");
    renameSync(path, `${path}.1`);
    await output.followRotation();
    await output.write(Buffer.from("second\n"));
    expect([readFileSync(`${path}.1`, "utf8"), readFileSync(path, "utf8")]).toEqual(["first\n", "second\n"]);
    rmSync(path);
    await output.followRotation();
    await output.write(Buffer.from("third\n"));
    expect(readFileSync(path, "utf8")).toBe("third\n");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    writeFileSync(path, "");
    await output.write(Buffer.from("fourth\n"));
    expect(readFileSync(path, "utf8")).toBe("fourth\n");
    await output.close();
  });

  test("that cannot be opened is an error with its path", async () => {
    await expect(openAccessLog({ file: folder, addressOf, log: silentLog })).rejects.toMatchObject({
      message: "cannot open the access log",
      cause: { code: "EISDIR", path: folder },
    });
  });
});
