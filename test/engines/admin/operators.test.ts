import { afterAll, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startApp } from "../../../src/app.ts";
import { silentLog } from "../../../src/observe/log.ts";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { ADMIN_CONFIG } from "../../admin/admin-service.ts";
import { configIn } from "../../service.ts";

const dataDirs = [temporaryFolder("operators-a"), temporaryFolder("operators-b")];
const files = dataDirs.map((dataDir) => join(dataDir, "production-admin-token"));
const shared = { databaseUrl: await postgresUrl(), admin: { ...ADMIN_CONFIG, token: undefined } };
const apps = await Promise.all(
  dataDirs.map((dataDir) => startApp({ ...configIn(dataDir), ...shared }, { log: silentLog })),
);
const token = readFileSync(files.find(existsSync) ?? "", "utf8").trim();
afterAll(() => Promise.all(apps.map((app) => app.close())));

/** To one of the two servers. */
async function send(
  n: number,
  path: string,
  { bearer = token, body }: { bearer?: string; body?: object } = {},
) {
  const response = await fetch(`${apps[n]?.admin?.url}${path}`, {
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${bearer}` },
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });
  return { status: response.status, json: Object(await response.json()) };
}

test("two servers that start together on a fresh database make one operator, whose token works on both", async () => {
  expect(files.filter(existsSync)).toHaveLength(1);
  for (const n of [0, 1]) {
    const { status, json } = await send(n, "/api/operators");
    expect([status, json.items]).toEqual([200, [expect.objectContaining({ name: "admin", role: "admin" })]]);
  }
});

test("an operator who is revoked, and a token that is rotated, are out on the other server within a second", async () => {
  for (const action of ["revoke", "rotate"]) {
    const { json } = await send(0, "/api/operators", { body: { name: `ann-${action}`, role: "viewer" } });
    const statusOn = async (n: number) => (await send(n, "/api/keys", { bearer: json.token })).status;
    // At once: what is not known is looked up.
    expect(await statusOn(1)).toBe(200);
    expect((await send(0, `/api/operators/${json.operator.id}/${action}`, { body: {} })).status).toBe(200);
    expect(await statusOn(0)).toBe(401);
    const since = performance.now();
    while ((await statusOn(1)) !== 401) await Bun.sleep(20);
    expect(performance.now() - since).toBeLessThan(1_000);
  }
});
