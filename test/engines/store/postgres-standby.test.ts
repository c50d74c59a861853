import { afterAll, expect, test } from "bun:test";
import { Unavailable } from "../../../src/api/errors.ts";
import { IDEMPOTENCY_CONFLICT } from "../../../src/domain/idempotency.ts";
import { openPostgres, type PostgresStores } from "../../../src/store/postgres/open-postgres.ts";
import { promote, startPostgres, startStandby } from "../../../trials/harness/postgres.ts";
import { InProcessCli } from "../../cli/cli.ts";
import { addPet, AT, KEY_ID, resultOf, rex } from "../../conformance/store-fixture.ts";
import { BY, storedSecret } from "../../key-store-arguments.ts";
import { until, untilAvailable, untilFound } from "../../timing.ts";

const primary = await startPostgres();
const standby = await startStandby(primary);
afterAll(() => Promise.all([primary.stop(), standby.stop()]));

/** Repeats a write until it is available and the same request is no longer in progress. */
const acknowledged = <T>(write: () => Promise<T>) =>
  untilFound(async () => {
    const result = await untilAvailable(write);
    return Object.is(result, IDEMPOTENCY_CONFLICT) ? undefined : { result };
  }, 10_000).then(({ result }) => result);

/** Rejects if the write is acknowledged. While a pool knows that the server is down, it has not tried. */
async function isNotReplicated(write: () => Promise<unknown>): Promise<void> {
  await until(async () => {
    const error = await write().then(
      () => new Error("it was acknowledged"),
      (reason: unknown) => reason,
    );
    if (!(error instanceof Unavailable)) throw error;
    return error.message.includes("no response within");
  }, 10_000);
}

const request = (idempotencyKey: string) => ({ keyId: KEY_ID, idempotencyKey, fingerprint: "f" });

test("a write that is repeated is acknowledged as durably as at first: the commit waits for the standby", async () => {
  const stores = await openPostgres(primary.url, { timeoutMs: 3_000 });
  const { clientStore, operators, petJson } = stores;
  const [ordered, closed] = [await addPet(clientStore), await addPet(clientStore)];
  const order = resultOf(await clientStore.placeOrder({ keyId: KEY_ID, petId: closed }, AT));
  const operator = await operators.createOperator({ name: "ann", role: "viewer" }, storedSecret(1), BY);
  if ("code" in operator) throw new Error(operator.code);
  /** Each in a pool of its own, so that none fails because another does. */
  const writes = (of: PostgresStores): readonly (() => Promise<object>)[] => [
    () => of.clientStore.createPet(rex, AT, request("pet")),
    () => of.clientStore.placeOrder({ keyId: KEY_ID, petId: ordered }, AT, request("order")),
    () => of.operators.revokeOperator(operator.id, BY),
  ];
  const close = () => clientStore.updateOrder({ keyId: KEY_ID, id: order.id, status: "completed" }, AT);
  const cli = new InProcessCli();
  const keys = (...argv: string[]) => cli.run(["keys", ...argv, "--database-url", primary.url]);
  await cli.run(["migrate", "--database-url", primary.url]);
  await keys("create", "--name", "app", "--plan", "free");
  const revoke = async () => {
    const { code, out, err } = await keys("revoke", "1");
    if (code !== 0) throw new Unavailable(err);
    return out;
  };

  await standby.stop();
  await Promise.all(writes(stores).map(isNotReplicated));
  await Promise.all([close, revoke].map(isNotReplicated));
  // It has committed them on its own disk, and after a restart it shows them.
  await primary.restart();
  expect((await untilAvailable(() => petJson.list({ limit: 10 }))).last).toBe(closed + 1n);
  await Promise.all(writes(stores).map(isNotReplicated));
  await Promise.all([close, revoke].map(isNotReplicated));

  await standby.restart();
  const before = await Promise.all(writes(stores).map(acknowledged));
  expect(before).toMatchObject([{ replayed: true }, { replayed: true }, { revokedAt: BY.at }]);
  expect(await untilAvailable(revoke)).toStartWith("Key 1 was already revoked ");
  await primary.kill();
  await promote(standby);
  const promoted = await openPostgres(standby.url);
  expect(await Promise.all(writes(promoted).map((write) => write()))).toEqual(before);
  expect((await promoted.petJson.get(closed + 1n))?.json).toContain('"name":"Rex"');
  await Promise.all([stores.close(), promoted.close()]);
}, 60_000);
