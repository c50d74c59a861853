import { expect } from "bun:test";
import type { UsageHistoryStore } from "../../src/domain/ports.ts";
import { silentLog } from "../../src/observe/log.ts";
import type { RequestRecord } from "../../src/observe/request-metrics.ts";
import { UsageRecorder } from "../../src/observe/usage-history.ts";
import { TestClock } from "../test-clock.ts";

const KEYS = 150;

/** A recorder on a store, and requests of every key. */
export function recordEveryKey(store: UsageHistoryStore) {
  const clock = new TestClock();
  const recorder = new UsageRecorder({ store, clock, log: silentLog });
  const requestOfEveryKey = () => {
    for (let keyId = 1; keyId <= KEYS; keyId++) {
      const request = { principal: { keyId }, decision: { outcome: "allowed" }, operation: "listPets" };
      recorder.observe(request as unknown as RequestRecord, { status: 200 } as never);
    }
  };
  const expectAdmitted = async (ofEachKey: number, reader = store) => {
    const totals = await reader.usageByKey({ by: "day", since: clock.now(), until: clock.now() });
    expect(totals.map(({ admitted }) => admitted)).toEqual(Array.from({ length: KEYS }, () => ofEachKey));
  };
  return { recorder, requestOfEveryKey, expectAdmitted };
}
