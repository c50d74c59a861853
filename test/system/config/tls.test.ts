import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CertificateAuthority } from "../../certificates.ts";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { readTlsCredentials, type TlsFiles } from "../../../src/config/tls.ts";
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

const message = (given: TlsFiles) => {
  const read = readTlsCredentials(given);
  return read instanceof UsageError ? read.message : "accepted";
};

describe("--tls-cert and --tls-key", () => {
  test("are paths in the configuration; without them the server speaks plain HTTP", () => {
    expect(parseConfig({ "tls-cert": ["a.crt"], "tls-key": ["a.key"] }).tls).toEqual({
      certFile: "a.crt",
      keyFile: "a.key",
    });
    expect(parseConfig().tls).toBeUndefined();
  });

  test("a certificate and its key are read", () => {
    expect(readTlsCredentials(files)).toEqual({
      cert: readFileSync(files.certFile, "utf8"),
      key: readFileSync(files.keyFile, "utf8"),
    });
  });

  test("a certificate can have its chain behind it", () => {
    const chain = readFileSync(files.certFile, "utf8") + readFileSync(authority.caFile, "utf8");
    expect(message({ ...files, certFile: textFile("chain", chain) })).toBe("accepted");
  });

  test("a key of another certificate is rejected", () => {
    expect(message({ ...files, keyFile: other.keyFile })).toBe(
      `--tls-key "${other.keyFile}" is not the private key of --tls-cert "${files.certFile}"`,
    );
  });

  test("files that are something else are rejected, and their content is not repeated", () => {
    expect(message({ ...files, certFile: textFile("text", "s3cret") })).toEndWith(
      "; it is not a certificate in PEM format",
    );
    expect(message({ certFile: files.keyFile, keyFile: files.certFile })).toEndWith(
      "; it is not a certificate in PEM format",
    );
    expect(message({ ...files, keyFile: textFile("text", "s3cret") })).toEndWith(
      "; it is not a private key in PEM format without passphrase",
    );
  });

  test("a missing file is rejected", () => {
    expect(message({ ...files, certFile: "missing" })).toBe(
      '--tls-cert is "missing"; it cannot be read: the file does not exist',
    );
    expect(message({ ...files, keyFile: "missing" })).toBe(
      '--tls-key is "missing"; it cannot be read: the file does not exist',
    );
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
