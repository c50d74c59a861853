import { afterAll, expect, test } from "bun:test";
import { startPostgres } from "../../../harness/postgres.ts";
import type { UsageHistoryStore } from "../../../src/domain/ports.ts";
import type { RequestRecord } from "../../../src/http/request-record.ts";
import { openPostgres } from "../../../src/store/postgres/postgres-store.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite-store.ts";
import { UsageRecorder } from "../../../src/usage-history/usage-recorder.ts";
import { whileLocked } from "../../store/sqlite-database.ts";
import { temporaryFolder } from "../../store/temporary-folder.ts";
import { TestClock } from "../../test-clock.ts";

const server = await startPostgres();
afterAll(() => server.stop());

const KEYS = 150;

/** A recorder on a store, and requests of every key. */
function record(store: UsageHistoryStore) {
  const clock = new TestClock();
  const recorder = new UsageRecorder({ store, clock, onFailure() {}, onRecovery() {} });
  const requestOfEveryKey = () => {
    for (let keyId = 1; keyId <= KEYS; keyId++) {
      const request = { principal: { keyId }, decision: { outcome: "allowed" }, operation: "listPets" };
      recorder.observe(request as unknown as RequestRecord, { status: 200 } as never);
    }
  };
  const today = { by: "day", since: clock.now(), until: clock.now() } as const;
  const admitted = async () => (await store.usageByKey(today)).map((totals) => totals.admitted);
  return { recorder, requestOfEveryKey, admitted };
}

const everyKey = (admitted: number) => Array.from({ length: KEYS }, () => admitted);

test("SQLite: while another process writes, counts wait, and then each counts once", async () => {
  using folder = temporaryFolder();
  const path = folder.path("store.db");
  const { usageHistory, close } = openSqlite(path);
  const { recorder, requestOfEveryKey, admitted } = record(usageHistory);
  requestOfEveryKey();
  await whileLocked(path, async () => {
    expect(await recorder.save()).toBe(false);
    requestOfEveryKey();
    expect(await recorder.save()).toBe(false);
    expect(await admitted()).toEqual([]);
  });
  await recorder.close();
  expect(await admitted()).toEqual(everyKey(2));
  await close();
});

test("PostgreSQL freezes or is killed while counts are added: each counts once", async () => {
  const { usageHistory, close } = await openPostgres(server.url, { timeoutMs: 400 });
  const { recorder, requestOfEveryKey, admitted } = record(usageHistory);
  let rounds = 0;
  for (let delayMs = 0; delayMs < 24; delayMs += 3) {
    rounds++;
    requestOfEveryKey();
    const saved = recorder.save();
    // At another point of the transactions in every round.
    await Bun.sleep(delayMs);
    if (rounds % 4 === 0) {
      await server.kill();
      await saved;
      await server.restart();
    } else {
      server.freeze();
      await saved;
      server.thaw();
    }
    while (!(await recorder.save())) await Bun.sleep(20);
  }
  await recorder.close();
  expect(await admitted()).toEqual(everyKey(rounds));
  await close();
}, 60_000);
