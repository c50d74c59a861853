import { type AdminConfig, type Config, originOf } from "../config/config.ts";
import { isLoopback } from "../config/network.ts";
import type { NewAuditEntry } from "../domain/audit.ts";
import type {
  AuditStore,
  Clock,
  KeyStore,
  OperatorStore,
  RateLimiter,
  Store,
  UsageHistoryStore,
} from "../domain/ports.ts";
import { headerLine, type HttpServer, type HttpServerOptions } from "../http1/index.ts";
import type { TlsCertificate } from "../http1/server.ts";
import { ErrorLog } from "../observe/event-reports.ts";
import type { Log } from "../observe/log.ts";
import type { AppMetrics } from "../observe/metrics.ts";
import type { AdapterMonitor } from "../observe/monitors.ts";
import { startupHandler } from "../api/dispatch.ts";
import { type AdminHandlers, type AdminPages, createAdminApp } from "./admin-app.ts";
import { listenForOperators } from "./admin-listener.ts";
import { dataHandlers } from "./handlers/data-handlers.ts";
import { type ServerFacts, serverHandlers } from "./handlers/server.ts";
import { sessionHandlers } from "./handlers/session.ts";
import { AdminAuthentication } from "./sign-in.ts";
import { followTokenFile, openToken, saveAdminUrl } from "./token.ts";

export interface AdminListener {
  /** Such as http://127.0.0.1:8090. */
  readonly url: string;
  /** The URL with the token: whoever opens it is signed in. */
  readonly signInUrl: string;
  /** Where the token is; undefined if a variable has it. */
  readonly tokenFile: string | undefined;
  readonly server: HttpServer;
  close(): Promise<void>;
}

export interface AdminAdapters {
  readonly store: Store;
  readonly operators: OperatorStore;
  readonly keys: KeyStore;
  readonly audit: AuditStore;
  readonly usageHistory: UsageHistoryStore;
  readonly rateLimiter: RateLimiter;
  /** Of the engine that stores the data. */
  readonly database: AdapterMonitor;
  /** Of the engine that counts for the rate limits. */
  readonly limits: AdapterMonitor;
}

export interface StartAdminOptions {
  readonly config: Config;
  readonly admin: AdminConfig;
  readonly adapters: AdminAdapters;
  readonly metrics: AppMetrics;
  readonly facts: ServerFacts;
  readonly clock: Clock;
  readonly log: Log;
  readonly isDraining: () => boolean;
  /** Applies the changes of keys on this server, which would see them within a second anyway. */
  readonly applyKeyChanges: () => Promise<void>;
  readonly tls: TlsCertificate | undefined;
  /** Which connections count together. */
  readonly peerOf: NonNullable<HttpServerOptions["peerOf"]>;
  readonly pages?: AdminPages | undefined;
}

/** On every response. */
const SECURITY_HEADER_LINES = headerLine("X-Content-Type-Options", "nosniff");

/** Serves operators on a listener of their own. Throws AdminListenError if the address cannot be listened on. */
export function startAdmin(options: StartAdminOptions): AdminListener {
  const { config, admin, adapters, metrics, clock, log, isDraining } = options;
  // The certificate is for the name that clients use, which is not the loopback address.
  const tls = isLoopback(admin.host) ? undefined : options.tls;
  const { token, file } = openToken(config, admin, log);
  const server = listenForOperators(admin, {
    handler: startupHandler,
    headerLines: SECURITY_HEADER_LINES,
    tls,
    peerOf: options.peerOf,
    onError: (error) => log.event("connection.failed", { error }),
  });
  // Cookies do not tell ports apart: each listener of a machine has a cookie of its own.
  const cookieName = `petstore-admin-${server.port}`;
  const recordIfPossible = auditRecorder(adapters, log);
  const authentication = new AdminAuthentication({
    token,
    cookieName,
    clock,
    log,
    recordAudit: recordIfPossible,
  });
  const stopFollowing =
    file && followTokenFile(file, (replaced) => authentication.replaceToken(replaced), log);
  const sessionOptions = {
    authentication,
    cookieName,
    isTls: tls !== undefined,
    recordAudit: (entry: NewAuditEntry) => adapters.audit.recordAudit(entry),
    recordIfPossible,
  };
  server.handler = createAdminApp({
    handlers: createHandlers(options, sessionOptions),
    authentication,
    checks: {
      database: async () => {
        await adapters.store.getPet(1n);
        return true;
      },
      // The listeners open after the migrations.
      migrations: () => true,
      "rate-limiter": () => adapters.limits.isAvailable,
      draining: () => !isDraining(),
    },
    errorLog: new ErrorLog(log),
    hostnames: admin.hostnames,
    pages: options.pages,
    metrics: (accept) => metrics.expose(accept),
    areMetricsPublic: admin.areMetricsPublic,
  });
  const url = originOf({ host: admin.host, port: server.port, isTls: tls !== undefined });
  const removeUrl = saveAdminUrl(config, url);
  return {
    url,
    signInUrl: `${url}/?token=${encodeURIComponent(token)}`,
    tokenFile: file,
    server,
    async close() {
      if (stopFollowing) stopFollowing();
      removeUrl();
      await server.close(0);
    },
  };
}

type SessionOptions = Omit<Parameters<typeof sessionHandlers>[0], "facts" | "clock">;

function createHandlers(options: StartAdminOptions, sessionOptions: SessionOptions): AdminHandlers {
  const { config, adapters, metrics, facts, clock, isDraining, applyKeyChanges } = options;
  const { plans, ban, environment } = config;
  const canReadUsage = () => adapters.limits.isAvailable;
  const { directory, handlers } = dataHandlers({
    ...adapters,
    environment,
    clock,
    plans,
    ban,
    canReadUsage,
    applyKeyChanges,
  });
  return {
    ...sessionHandlers({ ...sessionOptions, facts, clock }),
    ...serverHandlers({ ...adapters, facts, directory, live: metrics.live, isDraining, clock }),
    ...handlers,
  };
}

/** For what has happened already, or is refused anyway. */
function auditRecorder({ audit }: AdminAdapters, log: Log): (entry: NewAuditEntry) => Promise<void> {
  return async (entry) => {
    try {
      await audit.recordAudit(entry);
    } catch (error) {
      log.event("audit.write-failed", { action: entry.action, error });
    }
  };
}
