import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessLine, openAccessLog, openLogFile } from "../../src/observe/access-log.ts";
import { Unavailable } from "../../src/api/errors.ts";
import { RequestRecord } from "../../src/observe/request-metrics.ts";
import type { Request } from "../../src/http1/index.ts";
import { silentLog } from "../../src/observe/log.ts";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { type Service, startService } from "../service.ts";

const folder = temporaryFolder("access-log");

describe("the access log of a server", () => {
  const file = join(folder, "server.log");
  let service: Service;
  let lines: Record<string, unknown>[];

  beforeAll(async () => {
    service = await startService({ accessLog: file });
    const headers = { "X-Request-Id": 'mine"\\' };
    await service.call({ path: "/pets?limit=7&cursor=c2VjcmV0", headers });
    await service.call({ method: "POST", path: "/pets", body: { name: "Secret Rex", categoryId: 1 } });
    await service.call({ method: "HEAD", path: "/pets/1" });
    await service.call({ path: "/pets", key: "pet_live_invalid" });
    await fetch(new URL("/healthz?token=secret", service.url));
    await fetch(new URL("/nothing/secret", service.url));
    await service.stop();
    lines = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  });

  test("has a line for each request", () => {
    const usual = {
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      requestId: expect.stringMatching(/^[\w-]+$/),
      durationMs: expect.any(Number),
    };
    expect(lines).toEqual([
      {
        ...usual,
        requestId: 'mine"\\',
        keyId: 1,
        method: "GET",
        operation: "listPets",
        status: 400,
        bytes: expect.any(Number),
      },
      { ...usual, keyId: 1, method: "POST", operation: "createPet", status: 201, bytes: 43 },
      { ...usual, keyId: 1, method: "HEAD", operation: "getPet", status: 200, bytes: 0 },
      { ...usual, keyId: null, method: "GET", operation: null, status: 401, bytes: expect.any(Number) },
      { ...usual, keyId: null, method: "GET", operation: null, status: 200, bytes: 15 },
      { ...usual, keyId: null, method: "GET", operation: null, status: 404, bytes: expect.any(Number) },
    ]);
  });

  test("has no secret, no body and no value of a query", () => {
    const text = readFileSync(file, "utf8");
    for (const secret of [service.key, "pet_live", "Secret", "secret", "c2VjcmV0", "limit"]) {
      expect(text).not.toContain(secret);
    }
  });

  test("is for its owner alone", () => {
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe("a line", () => {
  const line = (changes: Partial<RequestRecord>, body: string | Uint8Array | null = "") => {
    const record = new RequestRecord({ method: "GET" } as Request, "id", performance.now());
    const response = { status: 200, headerLines: "", body } as const;
    return JSON.parse(accessLine(Object.assign(record, changes), response));
  };

  test("counts the bytes of the body, not its characters", () => {
    expect([line({}, "é").bytes, line({}, new Uint8Array(9)).bytes, line({}, null).bytes]).toEqual([2, 9, 0]);
  });

  test("has no key if the key could not be looked up", () => {
    expect(line({ principal: new Unavailable("x") }).keyId).toBeNull();
  });

  test("has 20 characters of a longer method", () => {
    expect(line({ request: { method: "M".repeat(8_000) } as Request }).method).toBe("M".repeat(20));
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

  test("that was renamed or removed is created again", async () => {
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
    await output.close();
  });

  test("that was truncated goes on at its beginning", async () => {
    const path = join(folder, "truncated.log");
    const output = await written(path, "first\n");
    writeFileSync(path, "");
    await output.write(Buffer.from("second\n"));
    expect(readFileSync(path, "utf8")).toBe("second\n");
    await output.close();
  });

  test("that cannot be opened is an error with its path", async () => {
    const error = await openAccessLog(folder, silentLog).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      message: "cannot open the access log",
      cause: { code: "EISDIR", path: folder },
    });
  });
});
