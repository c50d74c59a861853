import type { Environment } from "../../domain/api-keys.ts";
import type { Plans } from "../../domain/plans.ts";
import type {
  AuditStore,
  Clock,
  KeyStore,
  OperatorStore,
  RateLimiter,
  Store,
  UsageHistoryStore,
} from "../../domain/ports.ts";
import type { BanRules } from "../../domain/rate-limit.ts";
import { historyHandlers } from "./history.ts";
import { KeyDirectory } from "./key-directory.ts";
import { keyHandlers } from "./keys.ts";
import { petAndOrderHandlers } from "./pets-and-orders.ts";

export interface DataHandlerOptions {
  readonly environment: Environment;
  readonly store: Store;
  readonly operators: OperatorStore;
  readonly keys: KeyStore;
  readonly audit: AuditStore;
  readonly usageHistory: UsageHistoryStore;
  readonly rateLimiter: Pick<RateLimiter, "usage" | "bannedKeys" | "unban">;
  readonly clock: Clock;
  readonly plans: Plans;
  readonly ban: BanRules;
  /** Whether the quotas can be read now. */
  readonly canReadUsage: () => boolean;
  /** Applies a change on this server, which would see it within a second anyway. */
  readonly applyKeyChanges: () => Promise<void>;
}

/** The operations on data: a server and the command line have them alike. */
export function dataHandlers(options: DataHandlerOptions) {
  const directory = new KeyDirectory(options);
  const handlers = {
    ...keyHandlers(options, directory),
    ...historyHandlers(options),
    ...petAndOrderHandlers(options),
  };
  return { directory, handlers };
}

export type DataOperationId = keyof ReturnType<typeof dataHandlers>["handlers"];
