import type { AdminConfig } from "../config/config.ts";
import type { Environment } from "../domain/environments.ts";
import type { DatabaseStores, AdminStores } from "../domain/ports/stores.ts";
import type { PolicyInEffect } from "../domain/policy.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { KeySubject } from "../domain/rate-limit.ts";
import type { ServerRegister } from "../domain/ports/servers.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { ServerIdentity } from "../domain/servers.ts";
import type { DatabaseMonitor, LimiterMonitor } from "../observe/engine-monitor.ts";
import type { Log } from "../observe/log.ts";
import type { AppMetrics } from "../observe/metrics.ts";
import type { RequestLog } from "../observe/request-log.ts";
import type { WebhookSender } from "../background/webhook-delivery.ts";
import type { OperatorRates } from "./operator-rates.ts";
import type { Setting } from "./operations.ts";
import type { AdminAuthentication } from "./sign-in/admin-authentication.ts";
import type { ProviderSignIn } from "./sign-in/provider-sign-in.ts";

/** All that the operations of operators are made of. Each part takes what it needs of them. */
export interface Services extends AdminStores, Pick<DatabaseStores, "questions" | "operatorReads"> {
  readonly environment: Environment;
  /** Whether the data are samples. */
  readonly isDemo: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** The policy that this server applies. */
  readonly policy: PolicyInEffect;
  readonly rateLimiter: Pick<RateLimiter<KeySubject>, "quota" | "bannedKeys" | "unban">;
  readonly limiterMonitor: LimiterMonitor;
  readonly database: DatabaseMonitor;
  /** The free space on the disk of SQLite. */
  readonly freeBytes?: () => number;
  /** All servers on the database, and which of them this server is. */
  readonly servers: ServerRegister & { readonly self: ServerIdentity };
  /** Applies a change to this server at once. It would follow the change within a second anyway. */
  readonly applyChanges: (changedKeyId?: number) => Promise<void>;
  readonly applyOperatorChanges: () => void;

  readonly publicUrl: string;
  /** The host and port of the listener for clients. */
  readonly address: string;
  /** The time of the start, in milliseconds since the epoch. */
  readonly startedAt: number;
  readonly shownSettings: readonly Setting[];
  /** The values, by setting, that may differ from what was set. */
  readonly valuesInEffect: Readonly<Record<string, string>>;
  readonly metrics: AppMetrics;
  /** The last requests; undefined if the request log is off. */
  readonly requestLog: RequestLog | undefined;
  /** Undefined if no webhook is configured. */
  readonly webhook: Pick<WebhookSender, "url" | "describe" | "test"> | undefined;
  readonly isDraining: () => boolean;

  /** The configuration of the listener for operators. */
  readonly admin: AdminConfig;
  /** The URL of that listener. */
  readonly url: string;
  readonly authentication: AdminAuthentication;
  /** Undefined if operators sign in with tokens only. */
  readonly providerSignIn: ProviderSignIn | undefined;
  readonly operatorRates: OperatorRates;
}

/** What a server has before its listener for operators is open, or without one. */
export type ServerServices = Omit<
  Services,
  "admin" | "url" | "authentication" | "providerSignIn" | "operatorRates" | "applyOperatorChanges"
>;

/** The services of operations that read: their reads delay no client. */
export function withOperatorReads<Some extends Pick<Services, "operatorReads">>(
  services: Some,
): Some & AdminStores {
  return { ...services, ...services.operatorReads };
}
