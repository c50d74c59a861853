import type { AdminConfig } from "../../config/config.ts";
import type { Environment } from "../../domain/api-keys.ts";
import type { DatabaseStores, OperatorStores } from "../../domain/database-stores.ts";
import type { Clock, RateLimiter, ServerRegister } from "../../domain/ports.ts";
import type { Attribution } from "../../domain/audit.ts";
import type { PolicyInEffect } from "../../domain/limit-policy.ts";
import type { ServerIdentity } from "../../domain/servers.ts";
import type { Awaitable } from "../../runtime/awaitable.ts";
import type { Request } from "../../http1/index.ts";
import type { Log } from "../../observe/log.ts";
import type { AppMetrics } from "../../observe/metrics.ts";
import type { RequestLog } from "../../observe/request-log.ts";
import type { AdapterMonitor } from "../../observe/adapter-monitor.ts";
import type { WebhookSender } from "../../observe/webhook-delivery.ts";
import type {
  ADMIN_OPERATIONS,
  AdminInput,
  AdminOperationId,
  AdminRejectionOf,
  ResponseOf,
  Setting,
} from "../operations.ts";
import type { Principal } from "../sign-in/credentials.ts";
import type { OperatorRates } from "../operator-rates.ts";
import type { ProviderSignIn } from "../sign-in/provider-sign-in.ts";
import type { AdminAuthentication } from "../sign-in/admin-authentication.ts";

/** Who calls an operation, and when. */
export interface AdminContext {
  /** The attribution of a change. For an operation that needs no token, it names the actor that a token would have. */
  readonly by: Attribution;
  /** The operator. It is undefined for an operation that needs no token, and for a command on the machine. */
  readonly principal?: Principal;
}

/** The context of an operation whose handler needs the request. */
export interface RequestContext extends AdminContext {
  readonly request: Request;
  /** The headers that a success adds to the response. */
  readonly responseHeaders: Record<string, string>;
}
type ContextOf<Id extends AdminOperationId> = (typeof ADMIN_OPERATIONS)[Id] extends { needsRequest: true }
  ? RequestContext
  : AdminContext;

/** The handlers of all operations. */
export type AdminHandlers = {
  readonly [Id in AdminOperationId]: (
    input: AdminInput<Id>,
    context: ContextOf<Id>,
  ) => Awaitable<ResponseOf<Id> | AdminRejectionOf<Id>>;
};

/** The services for operations on data, which a server and the command line share. */
export interface OperatorServices
  extends OperatorStores, Omit<DatabaseStores, keyof OperatorStores | "petJson"> {
  readonly environment: Environment;
  readonly rateLimiter: Pick<RateLimiter, "quota" | "bannedKeys" | "unban">;
  /** Whether the quotas can be read from the rate limiter now. */
  readonly limiterMonitor: { readonly isAvailable: boolean };
  readonly servers: ServerRegister;
  readonly clock: Clock;
  readonly policy: PolicyInEffect;
  /** Applies a change to this server at once. It would follow the change within a second anyway. */
  readonly applyKeyChanges: (changedKeyId?: number) => Promise<void>;
  readonly applyOperatorChanges: () => void;
}

/** The services of operations that read: their reads delay no client. */
export function forReads<Services extends Pick<DatabaseStores, "storesForReads">>(
  services: Services,
): Services & OperatorStores {
  return { ...services, ...services.storesForReads };
}

/** The services that only a server has. */
export interface ServerServices extends Omit<OperatorServices, "applyOperatorChanges"> {
  readonly publicUrl: string;
  /** The host and port of the listener for clients. */
  readonly address: string;
  /** The time of the start, in milliseconds since the epoch. */
  readonly startedAt: number;
  readonly shownSettings: readonly Setting[];
  /** The values, by setting, that may differ from what was set. */
  readonly valuesInEffect: Readonly<Record<string, string>>;
  /** The monitor of the adapter that stores the data. */
  readonly database: AdapterMonitor;
  /** The free space on the disk of SQLite. */
  readonly freeBytes?: () => number;
  /** The monitor of the adapter that counts for the rate limits. */
  readonly limiterMonitor: AdapterMonitor;
  readonly servers: ServerRegister & { readonly self: ServerIdentity };
  readonly metrics: AppMetrics;
  /** The last requests; undefined if the request log is off. */
  readonly requestLog: RequestLog | undefined;
  /** Undefined if no webhook is configured. */
  readonly webhook: Pick<WebhookSender, "url" | "describe" | "test"> | undefined;
  readonly log: Log;
  readonly isDraining: () => boolean;
}

/** The services of the listener for operators. */
export interface ListenerServices extends ServerServices, OperatorServices {
  readonly limiterMonitor: AdapterMonitor;
  readonly servers: ServerServices["servers"];
  readonly admin: AdminConfig;
  /** Its URL. */
  readonly url: string;
  readonly authentication: AdminAuthentication;
  /** Undefined if operators sign in with tokens only. */
  readonly providerSignIn: ProviderSignIn | undefined;
  readonly operatorRates: OperatorRates;
}
