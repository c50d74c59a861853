import { afterAll, expect, test } from "bun:test";
import { Redis } from "ioredis";
import { readFileSync } from "node:fs";
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";
import { freePort } from "../../../trials/harness/server.ts";
import { SLOTS, startValkey } from "../../../trials/harness/valkey.ts";
import { openWithFallback, PATIENT } from "../../rate-limit/open-valkey.ts";

const authority = new CertificateAuthority();
const ca = readFileSync(authority.caFile, "utf8");
const otherCa = readFileSync(new CertificateAuthority().caFile, "utf8");
const server = await startValkey({ tls: authority.issue("IP:127.0.0.1") });
/** Its certificate names another host. */
const misnamed = await startValkey({ tls: authority.issue("DNS:valkey.example") });
/** A cluster of one node, whose certificate is for its name. It announces its address. */
const announced = await startValkey({
  tls: authority.issue("DNS:localhost"),
  settings: {
    "cluster-enabled": "yes",
    "cluster-port": `${freePort()}`,
    "cluster-announce-ip": "127.0.0.1",
    "tls-cluster": "yes",
    databases: "1",
  },
});
const owner = new Redis(announced.url, { tls: { rejectUnauthorized: false } });
await owner.call("CLUSTER", "ADDSLOTSRANGE", "0", `${SLOTS - 1}`);
owner.disconnect();
const named = [announced.url, announced.url].map((url) => url.replace("127.0.0.1", "localhost"));
afterAll(() => Promise.all([server, misnamed, announced].map((each) => each.stop())));

test.each([
  ["of another authority", { url: server.url, ca: otherCa }],
  ["of an authority that is not well known", { url: server.url }],
  ["for another host", { url: misnamed.url, ca }],
  ["of another authority, in a cluster,", { url: [server.url, server.url], ca: otherCa }],
  ["for another host, in a cluster,", { url: [misnamed.url, misnamed.url], ca }],
  ["for a name that a cluster does not announce", { url: named, ca }],
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
