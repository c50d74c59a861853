import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { type AdminService, startAdminService, TOKEN } from "../../admin/admin-service.ts";
import { selfSigned } from "../../../trials/harness/certificates.ts";
import { until } from "../../timing.ts";

const directory = temporaryDirectory("peer-tls");
const services: AdminService[] = [];
afterAll(() => Promise.all(services.map((service) => service.stop())));

/** Why the requests of each server are missing in the list of the first one; null if they are there. */
async function problems(): Promise<(string | null)[]> {
  const response = await fetch(`${services[0]?.adminUrl}/api/requests`, {
    headers: { Authorization: `Bearer ${TOKEN}` },
    tls: { rejectUnauthorized: false },
  });
  const { servers } = Object(await response.json()) as { servers: { problem: string | null }[] };
  return servers.map(({ problem }) => problem);
}

/** Each server tells where it listens some seconds after its start. */
const isKnown = (found: readonly (string | null)[]) =>
  found.length === 3 && !found.some((problem) => problem?.includes("--admin-address is off"));

test("servers with one certificate ask one another over TLS, also after it was renewed, and trust no other", async () => {
  const shared = { databaseUrl: await postgresUrl(), limitsUrls: [await valkeyUrl()] };
  const start = async (certificate: string) => {
    const tls = selfSigned(directory, certificate);
    const config = { ...shared, tls, publicUrl: "https://localhost" };
    services.push(await startAdminService({ host: "0.0.0.0" }, config));
    return tls;
  };
  await start("own");
  const { certFile } = await start("own");
  await start("other");
  const untrusted = expect.stringMatching(/^https:.* does not respond \(.*SELF_SIGNED/);
  await until(async () => isKnown(await problems()));
  expect(new Set(await problems())).toEqual(new Set([null, untrusted]));

  selfSigned(directory, "own");
  const renewed = { tls: { ca: readFileSync(certFile, "utf8") } };
  for (const { adminUrl } of services.slice(0, 2))
    await until(() =>
      fetch(`${adminUrl}/livez`, renewed).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  expect((await problems()).filter((problem) => problem === null)).toHaveLength(2);
}, 60_000);
