import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { startApp } from "../../../src/app.ts";
import { createLog } from "../../../src/log.ts";
import type { TlsFiles } from "../../../src/config/tls.ts";
import { followTlsFiles, readTlsFiles } from "../../../src/tls-files.ts";
import { configIn } from "../../service.ts";
import { selfSigned } from "../../../harness/certificates.ts";

const directory = mkdtempSync(join(tmpdir(), "petstore-tls-"));
const used: TlsFiles = { certFile: join(directory, "used.crt"), keyFile: join(directory, "used.key") };
let first: TlsFiles;
let second: TlsFiles;

beforeAll(() => {
  first = selfSigned(directory, "first");
  second = selfSigned(directory, "second");
});
afterAll(() => rmSync(directory, { recursive: true }));

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function use({ certFile, keyFile }: TlsFiles): void {
  copyFileSync(certFile, used.certFile);
  copyFileSync(keyFile, used.keyFile);
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await Bun.sleep(2);
}

describe("the files of a certificate", () => {
  test("must belong together", () => {
    expect(readTlsFiles(first).cert).toStartWith("-----BEGIN CERTIFICATE-----");
    expect(() => readTlsFiles({ ...first, keyFile: second.keyFile })).toThrow("is not the private key of");
  });

  function follow() {
    use(first);
    const events: string[] = [];
    const stop = followTlsFiles(used, {
      onChange: ({ cert }) => events.push(cert === readTlsFiles(second).cert ? "second" : "first"),
      onError: () => events.push("error"),
      everyMs: 10,
    });
    closing.push(stop);
    return events;
  }

  test("are read again when both have changed, and not without a change", async () => {
    const events = follow();
    await Bun.sleep(50);
    expect(events).toEqual([]);
    use(second);
    await until(() => events.length > 0);
    await Bun.sleep(50);
    expect(events).toEqual(["second"]);
  });

  test("that do not belong together are one error, until they change again", async () => {
    const events = follow();
    copyFileSync(second.certFile, used.certFile);
    await until(() => events.length > 0);
    await Bun.sleep(50);
    expect(events).toEqual(["error"]);
    copyFileSync(second.keyFile, used.keyFile);
    await until(() => events.length > 1);
    expect(events).toEqual(["error", "second"]);
  });

  test("may be missing for a time", async () => {
    const events = follow();
    unlinkSync(used.keyFile);
    await until(() => events.length > 0);
    use(second);
    await until(() => events.length > 1);
    expect(events).toEqual(["error", "second"]);
  });
});

test("a server with a certificate serves HTTPS, and the next certificate without a restart", async () => {
  use(first);
  const lines: string[] = [];
  const dataDir = mkdtempSync(join(tmpdir(), "petstore-"));
  closing.push(() => rmSync(dataDir, { recursive: true }));
  const log = createLog({ format: "json", write: (line) => lines.push(line) });
  const app = await startApp({ ...configIn(dataDir), tls: used }, { log });
  closing.unshift(() => app.close());

  expect(app.url).toStartWith("https://127.0.0.1:");
  const health = new URL("/healthz", app.url);
  const cert = readTlsFiles(first).cert;
  const response = await fetch(health, { tls: { ca: cert } });
  expect([response.status, response.headers.get("strict-transport-security")]).toEqual([
    200,
    "max-age=31536000",
  ]);

  writeFileSync(used.certFile, "broken");
  await until(() => lines.some((line) => line.includes("tls.certificate-invalid")));
  expect(await commonName(health)).toBe("first");
  use(second);
  await until(() => lines.some((line) => line.includes("tls.certificate-changed")));
  expect(await commonName(health)).toBe("second");
}, 15_000);

function commonName({ port }: URL): Promise<string | string[] | undefined> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: Number(port), rejectUnauthorized: false };
    const socket = connect(options, () => {
      resolve(socket.getPeerCertificate().subject.CN);
      socket.destroy();
    });
    socket.on("error", reject);
  });
}
