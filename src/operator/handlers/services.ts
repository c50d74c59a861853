import type { Environment, Plans } from "../../domain/api-keys.ts";
import type {
  AuditStore,
  Clock,
  CorrectionStore,
  KeyStore,
  OperatorStore,
  RateLimiter,
  ServerRegister,
  Store,
  UsageHistoryStore,
} from "../../domain/ports.ts";
import type { BanRules } from "../../domain/rate-limit.ts";
import type { AdminHandlers } from "../admin-app.ts";

/** What the operations on data need. */
export interface OperatorServices {
  readonly environment: Environment;
  readonly store: Store;
  readonly corrections: CorrectionStore;
  readonly operators: OperatorStore;
  readonly keys: KeyStore;
  readonly audit: AuditStore;
  readonly usageHistory: UsageHistoryStore;
  readonly rateLimiter: Pick<RateLimiter, "usage" | "bannedKeys" | "unban">;
  /** Of the rate limiter: whether the quotas can be read now. */
  readonly limits: { readonly isAvailable: boolean };
  /** Whether these quotas are all there are: servers on PostgreSQL without Valkey count each on its own. */
  readonly hasAllUsage: boolean;
  readonly servers: ServerRegister;
  /** On all servers: a server keeps its own in memory, and a command asks a server. */
  readonly listRequests: AdminHandlers["listRequests"];
  readonly clock: Clock;
  readonly plans: Plans;
  readonly ban: BanRules;
  /** Applies a change on this server, which would see it within a second anyway. */
  readonly applyKeyChanges: () => Promise<void>;
  readonly applyOperatorChanges: () => void;
}
