import { afterAll, expect, test } from "bun:test";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { selfSigned } from "../../../trials/harness/certificates.ts";
import { freePort } from "../../../trials/harness/server.ts";
import { InProcessCli } from "../../cli/cli.ts";
import { startAdminService, TOKEN } from "../../admin/admin-service.ts";

const tls = selfSigned(temporaryDirectory("admin-tls"), "admin");
// These services send no request to the public API, which would need the certificate.
const remote = await startAdminService({ host: "0.0.0.0" }, { tls });
const local = await startAdminService({}, { tls });
afterAll(() => Promise.all([remote.stop(), local.stop()]));

async function signIn(url: string): Promise<string> {
  const response = await fetch(`${url}/api/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token: TOKEN }),
    tls: { rejectUnauthorized: false },
  });
  expect(response.status).toBe(200);
  return response.headers.get("set-cookie") ?? "";
}

test("beyond loopback the listener serves HTTPS with the server's certificate, and its cookie is Secure", async () => {
  expect(remote.adminUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect(await signIn(remote.adminUrl)).toEndWith("; HttpOnly; SameSite=Strict; Secure");
});

test("on loopback it serves plain HTTP, because the certificate is for another name", async () => {
  expect(local.adminUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(await signIn(local.adminUrl)).toEndWith("; HttpOnly; SameSite=Strict");
});

test.each(["127.0.0.1", "0.0.0.0"])(
  "doctor knows the listener for operators on %s beside TLS",
  async (host) => {
    const cli = new InProcessCli();
    const flags = ["--tls-cert", tls.certFile, "--tls-key", tls.keyFile, "--port", "0"];
    const listener = `${host}:${freePort()}`;
    await using _ = await cli.serve([...flags, "--admin-address", listener]);
    // The certificate may not be valid at the time of the test clock.
    const findings = JSON.parse(await cli.out(["doctor", "--json", ...flags, "--admin-address", listener]));
    const expected = {
      level: "ok",
      message: `a server listens on ${listener.replace(":", " port ")} already`,
    };
    expect(findings).toContainEqual({ check: "ports", ...expected });
  },
);
