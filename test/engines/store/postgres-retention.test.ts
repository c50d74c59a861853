import { afterAll, expect, test } from "bun:test";
import { openStores } from "../../../src/adapters/open-stores.ts";
import { openAdapters } from "../../../src/adapters/open-adapters.ts";
import type { Attribution } from "../../../src/domain/audit.ts";
import type { DatabaseStores } from "../../../src/domain/ports/stores.ts";
import type { Operator } from "../../../src/domain/operators.ts";
import type { WriteResult } from "../../../src/domain/ports/pets-and-orders.ts";
import { DAY_MS, HOUR_MS } from "../../../src/text/time-units.ts";
import { DAILY_USAGE_DAYS, HOURLY_USAGE_DAYS } from "../../../src/domain/usage-history.ts";
import { hasFailedTooLong, MAX_WAITING_MS } from "../../../src/domain/webhooks.ts";
import { silentLog } from "../../../src/observe/log.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { request, rex } from "../../conformance/store-fixture.ts";
import { BY, hash, storedSecret } from "../../key-store-arguments.ts";
import { dataIn } from "../../data-directory.ts";
import { TestClock } from "../../test-clock.ts";

/* What is deleted by its age, by a server or a command whose clock is five days ahead of that of PostgreSQL. */

const NOW = Date.now();
const AHEAD = NOW + 5 * DAY_MS;
/** The age of data that is to stay for one more day. */
const youngerThan = (ms: number) => NOW - ms + DAY_MS;

const databaseUrl = await postgresUrl();
const data = dataIn(temporaryDirectory("retention"), databaseUrl);
const byAt = (at: number): Attribution => ({ actor: { kind: "server", name: "test" }, at });
const right = await openStores(data, { use: BY });
// The clock of this server has kept its difference for a day, so the server trusts it.
await right.storedValues.saveValues({ "clock-trusted-at": `${AHEAD}` });
const server = await openAdapters(data, new TestClock(AHEAD), silentLog);
const command = await openStores(data);
afterAll(() => Promise.all([server, command, right].map((stores) => stores.close())));

let names = 0;
/** An operator whose token has the hash of their identifier. */
async function newOperator(): Promise<Operator> {
  const id = (await right.operators.listOperators()).length + 1;
  const created = await right.operators.createOperator(
    { name: `operator-${id}`, role: "admin" },
    storedSecret(id),
    byAt(NOW),
  );
  if ("code" in created) throw new Error(created.code);
  return created;
}

/** A session that the token of an operator makes. */
const sessionOf = ({ id }: Operator, createdAt: number) => ({
  cookieHash: hash(1_000 + ++names),
  secretHash: hash(2_000 + names),
  operatorId: id,
  tokenHash: hash(id),
  createdAt,
  endsAt: createdAt + HOUR_MS,
});
const signedIn = (at: number) => ({ ...byAt(at), action: "admin.signed-in" }) as const;

/** What is to stay at a change by a server or a command that deletes what has ended. Returns what has stayed. */
const CHANGES: Record<string, (stores: DatabaseStores) => Promise<unknown>> = {
  "a session, when another one begins": async (stores) => {
    const operator = await newOperator();
    const [first, second] = [sessionOf(operator, NOW), sessionOf(operator, AHEAD)];
    await right.operators.createSession(first, signedIn(NOW));
    await stores.operators.createSession(second, signedIn(AHEAD));
    return (await right.operators.readAccess()).sessions.get(first.cookieHash);
  },
  "a code, when another one is made": async (stores) => {
    const { id: operatorId } = await newOperator();
    const codeOf = (n: number, at: number) => ({ codeHash: hash(n), operatorId, endsAt: at + 300_000 });
    await right.operators.createCode(codeOf(3_000 + operatorId, NOW), NOW);
    await stores.operators.createCode(codeOf(4_000 + operatorId, AHEAD), AHEAD);
    return (await right.operators.readAccess()).codes.get(hash(3_000 + operatorId));
  },
  "an earlier token of an operator, when the next one is replaced": async (stores) => {
    const { id } = await newOperator();
    const [first, second, third] = [hash(id), hash(5_000 + id), hash(6_000 + id)];
    const rotate = (on: DatabaseStores, tokenHash: string, at: number) =>
      on.operators.rotateOperator(id, { hash: tokenHash, hint: "…", overlapEndsAt: at + HOUR_MS }, byAt(at));
    await rotate(right, second, NOW);
    await rotate(stores, third, AHEAD);
    return (await right.operators.readAccess()).tokens.get(first);
  },
  "a replaced secret of a key, at a rotation": async (stores) => {
    const at = youngerThan(DAILY_USAGE_DAYS * DAY_MS);
    const [first, second, third] = [7_001, 7_002, 7_003].map((n) => storedSecret(n + 10 * ++names));
    if (!first || !second || !third) throw new Error("too few secrets");
    const { id } = await right.keys.createKey(
      { name: "app", plan: "free", createdAt: at },
      first,
      byAt(at - 1),
    );
    await right.keys.addSecret(id, { ...second, overlapEndsAt: at }, byAt(at));
    await stores.keys.addSecret(id, { ...third, overlapEndsAt: AHEAD }, byAt(AHEAD));
    return (await right.keys.listSecrets([id])).get(id)?.find(({ hint }) => hint === first.hint);
  },
};

test.each(Object.entries(CHANGES))("stays: %s", async (_, changeOn) => {
  expect(await changeOn(server)).toBeDefined();
  expect(await changeOn(command)).toBeDefined();
});

test("audit entries, usage and the results of idempotent requests stay, and the webhook skips nothing", async () => {
  const { retentionNow } = server;
  expect(Math.abs(retentionNow() - Date.now())).toBeLessThan(HOUR_MS);

  await right.audit.recordAudit({ ...byAt(youngerThan(MAX_WAITING_MS)), action: "data.restored" });
  await server.audit.deleteAudit(retentionNow() - MAX_WAITING_MS);
  expect((await right.audit.listAudit({ action: "data.restored", limit: 9 })).items).toHaveLength(1);

  const hours = [HOURLY_USAGE_DAYS, DAILY_USAGE_DAYS].map(
    (days) => Math.ceil(youngerThan(days * DAY_MS) / HOUR_MS) * HOUR_MS,
  );
  for (const [sequence, hour] of hours.entries()) {
    const keys = [
      { keyId: 1, admitted: 1, limited: 0, banned: 0, errors: 0, lastUsedAt: hour, byOperation: [] },
    ];
    await right.usageHistory.addUsage({ writer: "server", sequence: sequence + 1, hour, keys });
  }
  await server.usageHistory.deleteOldUsage(retentionNow());
  const read = async (by: "hour" | "day") =>
    (await right.usageHistory.readUsage({ keyId: 1, by, since: 0, until: NOW })).length;
  expect([await read("hour"), await read("day")]).toEqual([1, 2]);

  const create = (stores: DatabaseStores, at: number) => stores.clientStore.createPet(rex, at, request);
  const { id } = (await create(right, NOW)) as WriteResult;
  expect(await create(server, AHEAD)).toMatchObject({ id, replayed: true });

  const failure = { id: 7, type: "key.banned", at: NOW, status: null, error: "refused", durationMs: 1 };
  expect(hasFailedTooLong(7n, [failure], retentionNow())).toBeFalse();
});
