import type { AdminStores } from "../domain/ports/stores.ts";
import type { OperatorPetStore } from "../domain/ports/pets-and-orders.ts";
import { type KeyStoreOptions, SqlKeyStore } from "./api-keys.ts";
import { SqlAuditStore } from "./audit.ts";
import { SqlPolicyStore } from "./policy.ts";
import { SqlOperatorStore } from "./operators.ts";
import type { SqlDatabase } from "./sql/steps.ts";
import { SqlUsageHistoryStore } from "./usage-history.ts";

/** The stores that operations of operators use, on one database. */
export function adminStores(
  database: SqlDatabase,
  operatorPetStore: OperatorPetStore,
  keyOptions: KeyStoreOptions = {},
) {
  return {
    operatorPetStore,
    operators: new SqlOperatorStore(database, keyOptions.retentionNow),
    keys: new SqlKeyStore(database, keyOptions),
    policies: new SqlPolicyStore(database),
    audit: new SqlAuditStore(database),
    usageHistory: new SqlUsageHistoryStore(database),
  } satisfies AdminStores;
}
