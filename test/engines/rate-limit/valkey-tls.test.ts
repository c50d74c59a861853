import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { CertificateAuthority } from "../../certificates.ts";
import type { Server } from "../../../trials/harness/server.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { openWithFallback, PATIENT } from "../../rate-limit/open-valkey.ts";

const authority = new CertificateAuthority();
const ca = readFileSync(authority.caFile, "utf8");
/** Its certificate names 127.0.0.1. */
let server: Server;
/** Its certificate names another host. */
let misnamed: Server;

beforeAll(async () => {
  [server, misnamed] = await Promise.all([
    startValkey({ tls: authority.issue("IP:127.0.0.1") }),
    startValkey({ tls: authority.issue("DNS:valkey.example") }),
  ]);
}, 60_000);
afterAll(async () => {
  await Promise.all([server.stop(), misnamed.stop()]);
});

test.each([
  [
    "of another authority",
    () => ({ url: server.url, ca: readFileSync(new CertificateAuthority().caFile, "utf8") }),
  ],
  ["of an authority that is not well known", () => ({ url: server.url })],
  ["for another host", () => ({ url: misnamed.url, ca })],
])("a server with a certificate %s is not used", async (_name, settings) => {
  const { promise: unavailable, resolve } = Promise.withResolvers<string>();
  const rateLimiter = await openWithFallback({
    ...PATIENT,
    ...settings(),
    onStateChange: (state, cause) => resolve(`${state}: ${cause instanceof Error ? cause.message : ""}`),
  });
  expect(await unavailable).toMatch(/^unavailable: .*(?:unable to verify|does not match) .*certificate/);
  await rateLimiter.close();
});
