import { beforeAll, describe, expect, jest, spyOn, test } from "bun:test";
import {
  chmodSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { accessLine, openAccessLog, openLogFile } from "../../src/observe/access-log.ts";
import { type LineOutput, LineWriter, type LineWriterOptions } from "../../src/observe/line-writer.ts";
import { INTERNAL_ERROR, STANDARD_ERRORS, Unavailable } from "../../src/api/errors.ts";
import { errorResponse } from "../../src/api/responses.ts";
import { type RequestObserver, RequestRecord } from "../../src/observe/request-record.ts";
import type { Request, Response } from "../../src/http1/index.ts";
import { HeaderFields } from "../../src/http1/header-fields.ts";
import { ACCESS_LOG_FIELDS, type AccessLogField } from "../../src/domain/logging.ts";
import type { Decision } from "../../src/domain/rate-limit.ts";
import { silentLog } from "../../src/observe/log.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";
import { type Service, startService } from "../service.ts";
import { until } from "../timing.ts";

const directory = temporaryDirectory("access-log");

const linesOf = (file: string): Record<string, unknown>[] =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("the access log of a server", () => {
  const file = join(directory, "server.log");
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
const decision = {} as Decision;

function recordOf(changes: Partial<Request> = {}, fields = ""): RequestRecord {
  const headers = HeaderFields.parse(fields);
  const request = { method: "GET", path: "/", headers, clientAddress: "192.0.2.1", ...changes };
  return new RequestRecord(request as Request, "id");
}

describe("a line", () => {
  const textOf = (record: RequestRecord) => accessLine(record, OK, {});
  const lineOf = (record: RequestRecord, body: Response["body"] = "") =>
    JSON.parse(accessLine(record, { ...OK, body }, {}));

  test("has its time in milliseconds, and its duration in microseconds", () => {
    using now = spyOn(Date, "now");
    const lines = ["00.000", "00.000", "00.001"].map((seconds) => {
      const time = `2026-11-15T12:00:${seconds}Z`;
      now.mockReturnValue(Date.parse(time));
      return [textOf(Object.assign(recordOf(), { durationMs: 1.234_567 })), time];
    });
    expect(lines.map(([line]) => line)).toEqual(
      lines.map(
        ([, time]) =>
          `{"time":"${time}","requestId":"id","address":"192.0.2.1","keyId":null,"method":"GET","path":"/","operation":null,"status":200,"durationMs":1.235,"bytes":0}\n`,
      ),
    );
  });

  test("counts the bytes of the body, not its characters", () => {
    const bytesOf = (body: Response["body"]) => lineOf(recordOf(), body).bytes;
    expect([bytesOf("é"), bytesOf(new Uint8Array(9)), bytesOf(null)]).toEqual([2, 9, 0]);
  });

  test("has no key if the key could not be looked up", () => {
    expect(lineOf(Object.assign(recordOf(), { authentication: new Unavailable("x") })).keyId).toBeNull();
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
      Object.keys(JSON.parse(accessLine(record, errorResponse(STANDARD_ERRORS, INTERNAL_ERROR), { omit })));
    const all = namesWithout();
    for (const field of ACCESS_LOG_FIELDS) {
      expect(all).toContain(field);
      expect(namesWithout(field)).toEqual(all.filter((name) => name !== field));
    }
    expect(namesWithout(...ACCESS_LOG_FIELDS)).toHaveLength(all.length - ACCESS_LOG_FIELDS.length);
  });
});

describe("requests that no rate limit bounds", () => {
  useFakeTimers();
  const health = recordOf({ path: "/healthz" });
  const preflight = recordOf({ method: "OPTIONS", path: "/v1/pets" });
  const limited = Object.assign(recordOf(), { decision });

  const written = async (name: string, use: (observe: RequestObserver) => void) => {
    const file = join(directory, name);
    const accessLog = await openAccessLog({ file, log: silentLog });
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
    const file = join(directory, "cors.log");
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

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // The descriptor with which the directory was read is closed by now.
    return undefined;
  }
}

describe("the file", () => {
  const written = async (path: string, ...texts: string[]) => {
    const output = await openLogFile(path);
    for (const text of texts) await output.write(Buffer.from(text));
    return output;
  };

  test("is appended to, and one that exists keeps its mode", async () => {
    const path = join(directory, "existing.log");
    writeFileSync(path, "before\n");
    chmodSync(path, 0o640);
    await (await written(path, "after\n")).close();
    expect(readFileSync(path, "utf8")).toBe("before\nafter\n");
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  test("that was renamed or removed is created again, and one that was truncated goes on at its beginning", async () => {
    const path = join(directory, "rotated.log");
    const output = await written(path, "first\n");
    renameSync(path, `${path}.1`);
    await output.prepare();
    await output.write(Buffer.from("second\n"));
    expect([readFileSync(`${path}.1`, "utf8"), readFileSync(path, "utf8")]).toEqual(["first\n", "second\n"]);
    rmSync(path);
    await output.prepare();
    await output.write(Buffer.from("third\n"));
    expect(readFileSync(path, "utf8")).toBe("third\n");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    writeFileSync(path, "");
    await output.write(Buffer.from("fourth\n"));
    expect(readFileSync(path, "utf8")).toBe("fourth\n");
    const openFiles = () =>
      readdirSync("/proc/self/fd")
        .map((descriptor) => `${descriptor} ${linkOf(`/proc/self/fd/${descriptor}`)}`)
        .filter((file) => file.includes(path));
    const opened = openFiles();
    expect(opened).toEqual([expect.stringMatching(/^\d+ \S+rotated\.log$/)]);
    await output.prepare();
    expect(openFiles()).toEqual(opened);
    await output.close();
    expect(openFiles()).toEqual([]);
  });

  test("that cannot be opened is an error with its path", async () => {
    await expect(openAccessLog({ file: directory, log: silentLog })).rejects.toMatchObject({
      message: "cannot open the access log",
      cause: { code: "EISDIR", path: directory },
    });
  });
});

const NEVER_MS = 3_600_000;

/** An output that takes what `accept` lets it take. */
class TestOutput implements LineOutput {
  text = "";
  isClosed = false;
  rotations = 0;
  accept: (bytes: Uint8Array) => number | Promise<number> = ({ length }) => length;

  async write(bytes: Uint8Array): Promise<number> {
    const count = await this.accept(bytes);
    this.text += Buffer.from(bytes.subarray(0, count)).toString();

    return count;
  }

  async prepare(): Promise<void> {
    this.rotations++;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

function setUp(options: Partial<LineWriterOptions> = {}) {
  const output = new TestOutput();
  const events: unknown[] = [];
  const writer = new LineWriter({
    output,
    onFailure: (error) => events.push(["failed", error]),
    onRecovery: () => events.push(["recovered"]),
    onDropped: (lines) => events.push(["lines-dropped", lines]),
    writeEveryMs: NEVER_MS,
    ...options,
  });
  return { output, events, writer };
}

function noSpace(): never {
  throw new Error("no space");
}

describe("lines of a writer", () => {
  test("are written in order, after a time, after 64 KiB, and when the writer closes", async () => {
    const timed = setUp({ writeEveryMs: 5 });
    timed.writer.write("a\n");
    timed.writer.write("é\n");
    await until(() => timed.output.text === "a\né\n", 2_000);
    expect(timed.output.rotations).toBeGreaterThan(0);
    await timed.writer.close();

    const { writer, output, events } = setUp();
    const line = `${"x".repeat(1023)}\n`;
    for (let i = 0; i < 64; i++) writer.write(line);
    await until(() => output.text.length === 65_536, 2_000);
    writer.write("last\n");
    await writer.close();
    expect(output.text).toBe(`${line.repeat(64)}last\n`);
    expect([output.isClosed, output.rotations, events]).toEqual([true, 0, []]);
  });

  test("are completed when the output takes them in parts", async () => {
    const { writer, output } = setUp();
    output.accept = ({ length }) => Math.min(length, 3);
    writer.write("one line\n");
    writer.write("another\n");
    await writer.close();
    expect(output.text).toBe("one line\nanother\n");
  });

  test("are written once when the output fails in the middle of one, and the failure is reported once", async () => {
    const { writer, output, events } = setUp({ writeEveryMs: 1 });
    const tried = Promise.withResolvers<void>();
    let calls = 0;
    output.accept = () => {
      if (++calls === 5) tried.resolve();
      return calls === 1 ? 4 : noSpace();
    };
    writer.write("one line\n");
    await tried.promise;
    writer.write("another\n");
    output.accept = ({ length }) => length;
    await until(() => output.text.endsWith("another\n"), 2_000);
    await writer.close();
    expect(output.text).toBe("one line\nanother\n");
    expect(events).toEqual([["failed", new Error("no space")], ["recovered"]]);
  });

  test("are dropped and counted beyond 4 MiB", async () => {
    const { writer, output, events } = setUp();
    const taken = Promise.withResolvers<number>();
    output.accept = () => taken.promise;
    const line = `${"x".repeat(1023)}\n`;
    // The first 64 are being written.
    for (let i = 0; i < 64 + 4096 + 7; i++) writer.write(line);
    expect(events).toEqual([]);
    output.accept = ({ length }) => length;
    taken.resolve(65_536);
    await writer.close();
    expect(events).toEqual([["lines-dropped", 7]]);
    expect(output.text).toHaveLength(4160 * 1024);
  });
});

describe("an output", () => {
  useFakeTimers();

  const neverTakes = async (options: Partial<LineWriterOptions>) => {
    const { writer, output, events } = setUp(options);
    output.accept = () => new Promise<number>(() => {});
    writer.write("a\n");
    await advance(500);
    const close = async () => {
      const closed = writer.close();
      jest.advanceTimersByTime(1_000);
      await closed;
    };
    return { writer, output, events, close };
  };

  test("that never takes a line: those that are dropped are reported at most once a minute, and the rest at the end", async () => {
    const { writer, events, close } = await neverTakes({ maxWaiting: 2, writeEveryMs: 500 });
    for (const line of ["b\n", "c\n", "d\n"]) writer.write(line);
    jest.advanceTimersByTime(500);
    expect(events).toEqual([["lines-dropped", 2]]);
    for (const line of ["e\n", "f\n", "g\n"]) writer.write(line);
    jest.advanceTimersByTime(59_500);
    expect(events).toEqual([["lines-dropped", 2]]);
    jest.advanceTimersByTime(500);
    expect(events.slice(1)).toEqual([["lines-dropped", 3]]);
    writer.write("h\n");
    await close();
    expect(events.slice(2)).toEqual([["lines-dropped", 1]]);
  });

  test("gets the next lines half a second later unless another time is given", async () => {
    const output = new TestOutput();
    const ignore = () => {};
    const writer = new LineWriter({ output, onFailure: ignore, onRecovery: ignore, onDropped: ignore });
    for (const text of ["a\n", "b\n"]) {
      writer.write(text);
      await advance(499);
      expect(output.text).not.toContain(text);
      await advance(1);
      expect(output.text).toEndWith(text);
    }
    await writer.close();
  });

  test("that cannot be closed has failed", async () => {
    const { writer, output, events } = setUp();
    output.close = async () => noSpace();
    await writer.close();
    expect(events).toEqual([["failed", new Error("no space")]]);
  });

  test("that never takes a line delays the end by a second only", async () => {
    const { output, close } = await neverTakes({});
    await close();
    expect(output.isClosed).toBe(true);
  });
});
