import { SqlOperatorStore, type Statements } from "../operators.ts";
import type { Connection } from "./connection.ts";

export function sqliteOperatorStore(connection: Connection): SqlOperatorStore {
  const run = <T>(statements: Statements<T>): T => {
    const steps = statements();
    let step = steps.next();
    while (step.done !== true) step = steps.next(connection.all(step.value.sql, ...step.value.values));
    return step.value;
  };
  return new SqlOperatorStore({
    read: run,
    write: (statements) => connection.transactionWhenUnlocked(() => run(statements)),
  });
}
