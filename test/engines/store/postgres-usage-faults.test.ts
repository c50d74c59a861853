import { expect, test } from "bun:test";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";
import { silentLog } from "../../../src/observe/log.ts";
import type { RequestRecord } from "../../../src/observe/request-record.ts";
import { UsageRecorder } from "../../../src/background/usage-recorder.ts";
import { TestClock } from "../../test-clock.ts";
import { until } from "../../timing.ts";

const ROUNDS = 4;
const KEYS = 150;

test("PostgreSQL freezes or is killed while usage is added: each request counts once", async () => {
  const server = await startPostgres();
  const { usageHistory, close } = await openPostgres(server.url, { timeoutMs: 400 });
  const clock = new TestClock();
  const recorder = new UsageRecorder({ store: usageHistory, clock, log: silentLog });
  const requestOfEveryKey = () => {
    for (let keyId = 1; keyId <= KEYS; keyId++) {
      const request = { authentication: { keyId }, decision: { outcome: "allowed" }, operation: "listPets" };
      recorder.observe(request as unknown as RequestRecord, { status: 200 } as never);
    }
  };
  let failed = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    requestOfEveryKey();
    const saved = recorder.save();
    // The fault comes at another point of the transactions in every round.
    await Bun.sleep(4 * round);
    if (round % 2 === 0) {
      await server.kill();
      if (!(await saved)) failed++;
      await server.restart();
    } else {
      server.freeze();
      if (!(await saved)) failed++;
      server.thaw();
    }
    await until(() => recorder.save(), 10_000);
  }
  await recorder.close();
  expect(failed).toBeGreaterThan(0);
  await close();
  const patient = await openPostgres(server.url, { timeoutMs: 60_000 });
  const period = { by: "day", since: clock.now(), until: clock.now() } as const;
  const totals = await patient.usageHistory.usageByKey(period);
  expect(totals.map(({ admitted }) => admitted)).toEqual(Array.from({ length: KEYS }, () => ROUNDS));
  await patient.close();
  await server.stop();
});
