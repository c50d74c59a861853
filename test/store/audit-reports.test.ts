import { expect, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import type { NewAuditEntry } from "../../src/domain/audit.ts";
import { addAudit, reportAudit } from "../../src/store/audit.ts";
import type { Statements } from "../../src/store/sql/steps.ts";

const ENTRY: NewAuditEntry = { at: 1, actor: { kind: "server" }, action: "key.banned" };

/** A transaction whose statements run, as they do while another process has the database locked. */
function run<T>(statements: Statements<T>, firstId: bigint): T {
  const steps = statements();
  let id = firstId;
  let step = steps.next();
  while (step.done !== true) step = steps.next([{ id: id++ }]);
  return step.value;
}

function* work() {
  yield* addAudit(ENTRY);
  yield { sql: "UPDATE api_keys SET name = 'x'", values: [] };
  yield* addAudit({ ...ENTRY, at: 2 });
  return "done";
}

test("audit entries are reported with their identifiers when their transaction is committed", async () => {
  const reported: unknown[] = [];
  const write = async <T>(statements: Statements<T>) => {
    const result = run(statements, 5n);
    expect(reported).toEqual([]);
    return result;
  };
  expect(await reportAudit(work, write, (entry) => reported.push(entry))).toBe("done");
  expect(reported).toEqual([
    { ...ENTRY, id: 5n },
    { ...ENTRY, at: 2, id: 7n },
  ]);
});

test("a transaction that runs again reports its entries once, and one that fails reports none", async () => {
  const reported: bigint[] = [];
  const repeated = async <T>(statements: Statements<T>) => {
    run(statements, 1n);
    return run(statements, 8n);
  };
  await reportAudit(work, repeated, ({ id }) => reported.push(id));
  expect(reported).toEqual([8n, 10n]);
  const failing = async <T>(statements: Statements<T>): Promise<T> => {
    run(statements, 1n);
    throw new Unavailable("away");
  };
  await expect(reportAudit(work, failing, ({ id }) => reported.push(id))).rejects.toThrow("away");
  expect(reported).toHaveLength(2);
});
