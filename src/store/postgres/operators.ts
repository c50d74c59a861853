import type { SQL } from "bun";
import { SqlOperatorStore, type Statements } from "../operators.ts";
import type { Pools } from "./pool.ts";

export function postgresOperatorStore(pools: Pools): SqlOperatorStore {
  return new SqlOperatorStore({
    read: (statements) => pools.reads.query((sql) => run(statements, sql)),
    write: (statements) => pools.writes.transaction((tx) => run(statements, tx)),
    lock: "LOCK TABLE operators IN SHARE ROW EXCLUSIVE MODE",
  });
}

async function run<T>(statements: Statements<T>, sql: SQL): Promise<T> {
  const steps = statements();
  let step = steps.next();
  while (step.done !== true) {
    let n = 0;
    const numbered = step.value.sql.replaceAll("?", () => `$${++n}`);
    step = steps.next(await sql.unsafe(numbered, [...step.value.values]));
  }
  return step.value;
}
