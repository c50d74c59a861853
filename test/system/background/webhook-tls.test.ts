import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";

const authority = new CertificateAuthority();
const { certFile, keyFile } = authority.issue("DNS:localhost");
const receiver = Bun.serve({
  port: 0,
  tls: { cert: Bun.file(certFile), key: Bun.file(keyFile) },
  fetch: () => new Response("over TLS"),
});
afterAll(() => receiver.stop(true));

async function outcome(host: string, variables: Record<string, string>) {
  const script = join(import.meta.dir, "send-message.ts");
  const url = `https://${host}:${receiver.port}/`;
  const env = { PATH: process.env["PATH"], ...variables };
  const { stdout } = Bun.spawn([process.execPath, script, url], { env, stdout: "pipe" });
  return JSON.parse(await stdout.text());
}

test("a receiver with a certificate of an authority that the machine trusts gets the event, and no other does", async () => {
  const trusted = { NODE_EXTRA_CA_CERTS: authority.caFile };
  expect(await outcome("localhost", trusted)).toMatchObject({ status: 200, error: null, line: "over TLS" });
  expect(await outcome("localhost", {})).toMatchObject({
    status: null,
    error: expect.stringContaining("UNABLE_TO_VERIFY"),
  });
  expect(await outcome("127.0.0.1", trusted)).toMatchObject({
    status: null,
    error: expect.stringContaining("CERT"),
  });
  // This variable turns verification off elsewhere.
  const { status } = await outcome("localhost", { NODE_TLS_REJECT_UNAUTHORIZED: "0" });
  expect(status).toBeNull();
});
