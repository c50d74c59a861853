import { expect, test } from "bun:test";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { openPostgres } from "../../../src/store/postgres/store.ts";
import { recordEveryKey } from "../../observe/record-every-key.ts";

const ROUNDS = 4;

test("PostgreSQL freezes or is killed while usage is added: each request counts once", async () => {
  const server = await startPostgres();
  const { usageHistory, close } = await openPostgres(server.url, { timeoutMs: 400 });
  const { recorder, requestOfEveryKey, expectAdmitted } = recordEveryKey(usageHistory);
  let failed = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    requestOfEveryKey();
    const saved = recorder.save();
    // At another point of the transactions in every round.
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
    while (!(await recorder.save())) await Bun.sleep(20);
  }
  await recorder.close();
  expect(failed).toBeGreaterThan(0);
  await close();
  const patient = await openPostgres(server.url, { timeoutMs: 60_000 });
  await expectAdmitted(ROUNDS, patient.usageHistory);
  await patient.close();
  await server.stop();
});
