import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { copyFileSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { startApp } from "../../../src/app.ts";
import { createLog } from "../../../src/observe/log.ts";
import { followTlsFiles, readTlsFiles, type TlsFiles } from "../../../src/config/tls.ts";
import { configIn } from "../../service.ts";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { selfSigned } from "../../certificates.ts";

const directory = temporaryFolder("tls");
const used: TlsFiles = { certFile: join(directory, "used.crt"), keyFile: join(directory, "used.key") };
const first = selfSigned(directory, "first");
const second = selfSigned(directory, "second");

const closing: (() => unknown)[] = [];
beforeEach(() => void jest.useFakeTimers());
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  jest.useRealTimers();
});

let copies = 0;
/** The time of a file system may be too coarse to tell two copies apart that are made one right after the other. */
function copy(from: string, to: string): void {
  copyFileSync(from, to);
  utimesSync(to, ++copies, copies);
}

function use({ certFile, keyFile }: TlsFiles): void {
  copy(certFile, used.certFile);
  copy(keyFile, used.keyFile);
}

/** The files are looked at once a second. */
const passSeconds = (seconds: number) => void jest.advanceTimersByTime(seconds * 1_000);

async function whileTimePasses<T>(work: Promise<T>): Promise<T> {
  while (Bun.peek.status(work) === "pending") {
    await new Promise<void>((resolve) => setImmediate(resolve));
    jest.advanceTimersByTime(1);
  }
  return work;
}

describe("the files of a certificate", () => {
  function follow() {
    use(first);
    const events: string[] = [];
    const stop = followTlsFiles(used, {
      onChange: ({ cert }) => events.push(cert === readTlsFiles(second).cert ? "second" : "first"),
      onError: () => events.push("error"),
    });
    closing.push(stop);
    return events;
  }

  test("are read again when they have changed and stay the same for a second", () => {
    const events = follow();
    passSeconds(10);
    expect(events).toEqual([]);
    use(second);
    passSeconds(1);
    expect(events).toEqual([]);
    passSeconds(10);
    expect(events).toEqual(["second"]);
  });

  test.each([
    ["that do not belong together", () => copy(second.certFile, used.certFile)],
    ["of which one is missing", () => unlinkSync(used.keyFile)],
  ])("%s are one error, until they change again", (_, spoil) => {
    const events = follow();
    spoil();
    passSeconds(10);
    expect(events).toEqual(["error"]);
    use(second);
    passSeconds(2);
    expect(events).toEqual(["error", "second"]);
  });
});

test("a server with a certificate serves HTTPS, and the next certificate without a restart", async () => {
  use(first);
  const lines: string[] = [];
  const dataDir = temporaryFolder("tls-data");
  const log = createLog({ format: "json", write: (line) => lines.push(line) });
  const app = await whileTimePasses(startApp({ ...configIn(dataDir), tls: used }, { log }));
  closing.push(() => whileTimePasses(app.close()));

  expect(app.url).toStartWith("https://127.0.0.1:");
  const health = new URL("/healthz", app.url);
  const cert = readTlsFiles(first).cert;
  const response = await fetch(health, { tls: { ca: cert } });
  expect([response.status, response.headers.get("strict-transport-security")]).toEqual([
    200,
    "max-age=31536000",
  ]);

  writeFileSync(used.certFile, "broken");
  passSeconds(2);
  expect(lines.join("")).toContain("tls.certificate-invalid");
  expect(await commonName(health)).toBe("first");
  use(second);
  passSeconds(2);
  expect(lines.join("")).toContain("tls.certificate-changed");
  expect(await commonName(health)).toBe("second");
});

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
