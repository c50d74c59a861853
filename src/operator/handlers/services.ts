import type { AdminConfig } from "../../config/config.ts";
import type { Environment, Plans } from "../../domain/api-keys.ts";
import type { Clock, RateLimiter, ServerRegister, Stores } from "../../domain/ports.ts";
import type { Attribution } from "../../domain/audit.ts";
import type { BanRules } from "../../domain/rate-limit.ts";
import type { ServerIdentity, ServerState } from "../../domain/servers.ts";
import type { Awaitable } from "../../runtime/event-loop.ts";
import type { Request } from "../../http1/index.ts";
import type { Log } from "../../observe/log.ts";
import type { AppMetrics } from "../../observe/metrics.ts";
import type { RequestLog } from "../../observe/request-log.ts";
import type { AdapterMonitor } from "../../observe/request-metrics.ts";
import type {
  AdminInput,
  AdminOperationId,
  AdminRejectionOf,
  QueryOf,
  ResponseOf,
  Setting,
} from "../operations.ts";
import type { ReadResponse } from "../calls.ts";
import type { AdminAuthentication, Principal } from "../sign-in.ts";

/** Who calls an operation, and when. */
export interface AdminContext {
  /** Of an operation that needs no token, what the actor would be with one. */
  readonly by: Attribution;
  /** Undefined for an operation that needs no token, and for a command on the machine. */
  readonly principal?: Principal;
}

/** An operation on the session needs the request: its cookie is the session. */
export interface SessionContext extends AdminContext {
  readonly request: Request;
  /** Of a request that another server has signed. */
  readonly signResponse?: ((body: string) => string) | undefined;
  /** What a success sets. */
  readonly responseHeaders: Record<string, string>;
}
type ContextOf<Id> = Id extends `${string}Session` | "proveServer" ? SessionContext : AdminContext;

/** Every operation has a handler. */
export type AdminHandlers = {
  readonly [Id in AdminOperationId]: (
    input: AdminInput<Id>,
    context: ContextOf<Id>,
  ) => Awaitable<ResponseOf<Id> | AdminRejectionOf<Id>>;
};

/** What the operations on data need: a server and the command line have it alike. */
export interface OperatorServices extends Stores {
  readonly environment: Environment;
  readonly rateLimiter: Pick<RateLimiter, "usage" | "bannedKeys" | "unban">;
  /** Of the rate limiter: whether the quotas can be read now. */
  readonly limits: { readonly isAvailable: boolean };
  /** Whether these quotas are all there are: servers on PostgreSQL without Valkey count each on its own. */
  readonly hasAllUsage: boolean;
  readonly servers: ServerRegister;
  readonly clock: Clock;
  readonly plans: Plans;
  readonly ban: BanRules;
  /** Applies a change on this server, which would see it within a second anyway. */
  readonly applyKeyChanges: () => Promise<void>;
  readonly applyOperatorChanges: () => void;
}

/** What only a server has. */
export interface ServerServices extends OperatorServices {
  readonly admin: AdminConfig;
  readonly publicUrl: string;
  /** Host and port of the listener for clients. */
  readonly address: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly shownSettings: readonly Setting[];
  /** Of the adapter that stores the data. */
  readonly database: AdapterMonitor;
  /** On the disk of SQLite. */
  readonly freeBytes?: () => number;
  /** Of the adapter that counts for the rate limits. */
  readonly limits: AdapterMonitor;
  readonly servers: ServerRegister & { readonly self: ServerIdentity };
  readonly metrics: AppMetrics;
  /** Undefined if it is off. */
  readonly requestLog: RequestLog | undefined;
  readonly log: Log;
  readonly isDraining: () => boolean;
  /** Of the listener for operators. */
  readonly url: string;
  readonly authentication: AdminAuthentication;
  /** What shows whoever knows the secret of the servers that this is one of them. */
  readonly proofOf: (nonce: string, request: Request) => string;
  /** Signs the body of the response to another server, or to a command; undefined if neither has signed the request. */
  readonly signResponseTo: (request: Request) => ((body: string) => string) | undefined;
  /** The requests of another server, or why it cannot be asked. */
  readonly askForRequests: (
    server: ServerState,
    query: QueryOf<"listRequests">,
  ) => Promise<ReadResponse<"listRequests"> | string>;
}
