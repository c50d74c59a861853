import { afterAll, expect, test } from "bun:test";
import { bearer } from "../../bearer.ts";
import { startApp } from "../../../src/app.ts";
import type { KeyChange } from "../../../src/domain/api-keys.ts";
import { toNewSecret } from "../../../src/domain/secrets.ts";
import { createLog, silentLog } from "../../../src/observe/log.ts";
import { generateToken } from "../../../src/operator/sign-in/token.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { ADMIN_CONFIG } from "../../admin/admin-service.ts";
import { startRequest } from "../../http/raw.ts";
import { BY } from "../../key-store-arguments.ts";
import { addKey, configIn } from "../../service.ts";
import { until } from "../../timing.ts";

const postgres = await startPostgres();
/** Keys that the first server knows to have changed. */
const followed: number[] = [];
const log = createLog({
  format: "json",
  write(line) {
    const { event, keyId } = JSON.parse(line);
    if (event === "key.changed") followed.push(keyId);
  },
});
const configOf = (name: string) => configIn(temporaryDirectory(name), { databaseUrl: postgres.url });
const app = await startApp({ ...configOf("late-bodies-a"), admin: ADMIN_CONFIG }, { log });
const other = await startApp(configOf("late-bodies-b"), { log: silentLog });
afterAll(async () => {
  await Promise.all([app.close(), other.close()]);
  await postgres.stop();
});

const PET = { name: "Rex", categoryId: 1 };
const createPet = (secret: string) =>
  startRequest(app.url, { path: "/v1/pets", headers: bearer(secret), body: PET });
async function newKey() {
  const key = await addKey(app.keys, {});
  await until(() => followed.includes(key.id), 1_000);
  return key;
}
/** Changes the key by the other server, and waits until the first one knows. */
async function changeKey(id: number, change: KeyChange): Promise<void> {
  followed.length = 0;
  await other.keys.updateKey(id, change, BY);
  await until(() => followed.includes(id), 1_000);
}

test("a key and an operator who are revoked on the other server are 401 when the body comes 1.5 s later", async () => {
  const { id, secret } = await newKey();
  const token = generateToken();
  await app.operators.createOperator({ name: "root", role: "admin" }, toNewSecret(generateToken()), BY);
  const operator = await app.operators.createOperator({ name: "ann", role: "admin" }, toNewSecret(token), BY);
  const body = { name: "late", role: "admin" };
  const requests = await Promise.all([
    createPet(secret),
    startRequest(app.admin?.url ?? "", { path: "/api/operators", headers: bearer(token), body }),
  ]);
  await other.keys.updateKey(id, { revokedAt: Date.now() }, BY);
  await other.operators.revokeOperator(Object(operator).id, BY);
  await Bun.sleep(1_500);
  const responses = await Promise.all(requests.map((finish) => finish()));
  expect(responses.map(({ status, body }) => [status, JSON.parse(body).code])).toEqual([
    [401, "invalid_api_key"],
    [401, "invalid_token"],
  ]);
  expect((await app.operators.listOperators()).map(({ name }) => name)).toEqual(["bootstrap", "root", "ann"]);
});

test("a key that has changed and cannot be read when the body arrives is 503, with the limits of the key", async () => {
  const { id, secret } = await newKey();
  const finish = await createPet(secret);
  await changeKey(id, { name: "renamed" });
  await postgres.stop();
  const { status, headers, body } = await finish();
  expect([status, JSON.parse(body).code]).toEqual([503, "unavailable"]);
  expect(JSON.parse(body).message).toContain("The API key cannot be verified right now");
  expect(headers["x-ratelimit-limit"]).toBe("1000000000");
  expect(Number(headers["retry-after"])).toBeGreaterThan(0);
});
