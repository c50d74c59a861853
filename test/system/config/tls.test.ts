import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CertificateAuthority } from "../../certificates.ts";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { readTlsCredentials } from "../../../src/config/tls.ts";
import { UsageError } from "../../../src/config/usage-error.ts";
import { InProcessCli } from "../../cli/cli.ts";
import { parseConfig } from "../../config/parsing.ts";

const authority = new CertificateAuthority();
const files = authority.issue("DNS:localhost");
const other = authority.issue("DNS:localhost");
const folder = temporaryFolder("tls");

function textFile(name: string, text: string): string {
  const path = join(folder, name);
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
      expect(readTlsCredentials({ ...files, certFile })).toEqual({
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
    const read = readTlsCredentials(given);
    expect(read).toBeInstanceOf(UsageError);
    expect(read).toMatchObject({ message: expect.stringMatching(message) });
    expect(JSON.stringify(read)).not.toContain("s3cret");
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
