import { expect, test } from "bun:test";
import { AuditRetention } from "../../src/observe/audit-trail.ts";

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 10, 15);

function retention(deleteAudit: (before: number) => Promise<boolean>) {
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const options = { audit: { deleteAudit }, now: () => NOW, retentionMs: 400 * DAY_MS, onError, pauseMs: 0 };
  return { retention: new AuditRetention(options), errors };
}

test("deletes what is older than the retention, until there is no more", async () => {
  const calls: number[] = [];
  const { retention: started, errors } = retention(async (before) => calls.push(before) < 3);
  await started.run();
  expect(calls).toEqual(Array(3).fill(NOW - 400 * DAY_MS));
  await started.close();
  expect(errors).toEqual([]);
});

test("an error is reported, and the next run tries again", async () => {
  let calls = 0;
  const { retention: started, errors } = retention(async () => {
    if (++calls === 1) throw new Error("disk full");
    return false;
  });
  await started.run();
  expect(errors).toMatchObject([{ message: "disk full" }]);
  await started.run();
  expect({ calls, errors: errors.length }).toEqual({ calls: 2, errors: 1 });
  await started.close();
});

test("closing ends a run after its current transaction", async () => {
  let calls = 0;
  const { retention: started } = retention(async () => {
    calls++;
    void started.close();
    return true;
  });
  await started.run();
  expect(calls).toBe(1);
});
