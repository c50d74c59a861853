import { afterEach, describe, expect, jest, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { copyFileSync, readFileSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { startApp } from "../../../src/app.ts";
import { createLog } from "../../../src/observe/log.ts";
import { CertificateAuthority, selfSigned } from "../../../trials/harness/certificates.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { followFiles } from "../../../src/config/follow-files.ts";
import { readTlsFiles, type TlsFiles } from "../../../src/config/tls.ts";
import { UsageError } from "../../../src/config/usage-error.ts";
import { InProcessCli } from "../../cli/cli.ts";
import { parseConfig } from "../../config/parsing.ts";
import { metricsOf } from "../../observe/parse-metrics.ts";
import { configIn } from "../../service.ts";

const authority = new CertificateAuthority();
const files = authority.issue("DNS:localhost");
const other = authority.issue("DNS:localhost");
const directory = temporaryDirectory("tls");

function textFile(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const chain = textFile(
  "chain",
  [files.certFile, authority.caFile].map((path) => readFileSync(path, "utf8")).join(""),
);
const secret = textFile("text", "s3cret");
const NO_CERTIFICATE = /; it is not a certificate in PEM format$/;
const NO_KEY = /; it is not a private key in PEM format without passphrase$/;
const OTHER_KEY = `--tls-key "${other.keyFile}" is not the private key of --tls-cert "${files.certFile}"`;
const missing = (flag: string) => `${flag} is "missing"; it cannot be read: the file does not exist`;

describe("--tls-cert and --tls-key", () => {
  test("are paths in the configuration; without them the server speaks plain HTTP", () => {
    const tls = { certFile: "a.crt", keyFile: "a.key" };
    expect(parseConfig({ "tls-cert": ["a.crt"], "tls-key": ["a.key"] }).tls).toEqual(tls);
    expect(parseConfig().tls).toBeUndefined();
  });

  test("a certificate, with its chain behind it too, and its key are read", () => {
    const key = readFileSync(files.keyFile, "utf8");
    for (const certFile of [files.certFile, chain])
      expect(readTlsFiles({ ...files, certFile })).toEqual({
        cert: readFileSync(certFile, "utf8"),
        key,
      });
  });

  test.each([
    ["a key of another certificate", { ...files, keyFile: other.keyFile }, OTHER_KEY],
    ["a text as the certificate", { ...files, certFile: secret }, NO_CERTIFICATE],
    ["the files exchanged", { certFile: files.keyFile, keyFile: files.certFile }, NO_CERTIFICATE],
    ["a text as the key", { ...files, keyFile: secret }, NO_KEY],
    ["no file for the certificate", { ...files, certFile: "missing" }, missing("--tls-cert")],
    ["no file for the key", { ...files, keyFile: "missing" }, missing("--tls-key")],
  ])("%s: rejected, and no content of a file is repeated", (_, given, message) => {
    const read = () => readTlsFiles(given);
    expect(read).toThrow(UsageError);
    expect(read).toThrow(message);
    expect(read).not.toThrow("s3cret");
  });

  test("serve rejects one without the other, and wrong files, before it touches any data", async () => {
    const cli = new InProcessCli();
    const missing = { code: 2, err: "--tls-cert and --tls-key belong together; one of them is missing" };
    expect(await cli.run(["serve", "--tls-cert", files.certFile])).toMatchObject(missing);
    expect(await cli.run(["serve"], { PETSTORE_TLS_KEY: files.keyFile })).toMatchObject(missing);
    const wrong = await cli.run(["serve", "--tls-cert", files.certFile], { PETSTORE_TLS_KEY: other.keyFile });
    expect(wrong).toMatchObject({ code: 2, out: "" });
  });
});

const used: TlsFiles = { certFile: join(directory, "used.crt"), keyFile: join(directory, "used.key") };
const first = selfSigned(directory, "first");
const second = selfSigned(directory, "second");

const closing: (() => unknown)[] = [];
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
    jest.useFakeTimers();
    use(first);
    const events: string[] = [];
    const stop = followFiles(Object.values(used), {
      everyMs: 1_000,
      read: () => readTlsFiles(used),
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
  jest.useFakeTimers();
  use(first);
  const lines: string[] = [];
  const dataDir = temporaryDirectory("tls-data");
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
  const eventsOf = (text: string): readonly string[] => text.match(/tls\.certificate-\w+/g) ?? [];
  // It is valid for a day.
  const expires = "tls.certificate-expires";
  expect(eventsOf(lines.join(""))).toEqual([expires, "tls.certificate-incomplete"]);
  expect(await commonName(health)).toBe("first");
  // The other file may follow.
  passSeconds(27);
  expect(eventsOf(lines.join(""))).toEqual([expires, "tls.certificate-incomplete"]);
  passSeconds(4);
  const events = [expires, "tls.certificate-incomplete", "tls.certificate-invalid"];
  expect(eventsOf(lines.join(""))).toEqual(events);
  use(second);
  passSeconds(2);
  expect(eventsOf(lines.join(""))).toEqual([...events, "tls.certificate-changed", expires]);
  expect(await commonName(health)).toBe("second");
  const expiry = () =>
    metricsOf(app).value("petstore_tls_certificate_expiry_timestamp_seconds") ?? Number.NaN;
  expect(expiry() - Date.now() / 1_000).toBeWithin(0, 86_401);
  use(files);
  passSeconds(2);
  expect(expiry()).toBe(new X509Certificate(readTlsFiles(files).cert).validToDate.getTime() / 1_000);
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
