import type { PetJsonSource, ClientStore, OperatorPetStore } from "./pets-and-orders.ts";
import type { KeyStore } from "./keys.ts";
import type { PolicyStore } from "./policy.ts";
import type { ValueStore } from "./stored-values.ts";
import type { ServerReportStore, QuestionStore } from "./servers.ts";
import type { OperatorStore } from "./operators.ts";
import type { AuditStore } from "./audit.ts";
import type { WebhookStore } from "./webhooks.ts";
import type { UsageHistoryStore } from "./usage-history.ts";

/** All stores of one database. */
export interface Stores {
  readonly clientStore: ClientStore;
  readonly petJson: PetJsonSource;
  readonly operatorPetStore: OperatorPetStore;
  readonly operators: OperatorStore;
  readonly keys: KeyStore;
  readonly policies: PolicyStore;
  readonly audit: AuditStore;
  readonly storedValues: ValueStore;
  readonly serverReports: ServerReportStore;
  readonly questions: QuestionStore;
  readonly usageHistory: UsageHistoryStore;
  readonly webhooks: WebhookStore;
}

/** Whether a database can be used. Times are milliseconds. */
export type StateChange =
  { readonly state: "down"; readonly cause: unknown } | { readonly state: "up"; readonly afterMs: number };

/** The stores that operations of operators use. */
export type AdminStores = Pick<
  Stores,
  "operatorPetStore" | "operators" | "keys" | "policies" | "audit" | "usageHistory"
>;

/**
 * A database has its stores twice. Reads of `operatorReads` never delay those of clients, however many rows they search
 * or add up. Each sees what was acknowledged before it. Beyond their bounds in number and time they throw Unavailable.
 */
export interface DatabaseStores extends Stores {
  readonly operatorReads: AdminStores;
}
