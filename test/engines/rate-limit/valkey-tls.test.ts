import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { CertificateAuthority } from "../../certificates.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { openWithFallback, PATIENT } from "../../rate-limit/open-valkey.ts";

const authority = new CertificateAuthority();
const ca = readFileSync(authority.caFile, "utf8");
const otherCa = readFileSync(new CertificateAuthority().caFile, "utf8");
const server = await startValkey({ tls: authority.issue("IP:127.0.0.1") });
/** Its certificate names another host. */
const misnamed = await startValkey({ tls: authority.issue("DNS:valkey.example") });
afterAll(() => Promise.all([server.stop(), misnamed.stop()]));

test.each([
  ["of another authority", { url: server.url, ca: otherCa }],
  ["of an authority that is not well known", { url: server.url }],
  ["for another host", { url: misnamed.url, ca }],
])("a server with a certificate %s is not used", async (_name, settings) => {
  const { promise: unavailable, resolve } = Promise.withResolvers<string>();
  const rateLimiter = await openWithFallback({
    ...PATIENT,
    ...settings,
    onStateChange: (state, cause) => resolve(`${state}: ${cause instanceof Error ? cause.message : ""}`),
  });
  expect(await unavailable).toMatch(/^unavailable: .*(?:unable to verify|does not match) .*certificate/);
  await rateLimiter.close();
});
