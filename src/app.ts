import { PETSTORE_API, RESPONSE_STATUSES } from "./petstore/operations.ts";
import packageJson from "../package.json" with { type: "json" };
import { type Adapters, openAdapters } from "./adapters.ts";
import { SECURITY_HEADER_LINES, startupHandler } from "./api/dispatch.ts";
import { Authenticator } from "./auth/authenticator.ts";
import { Addresses } from "./auth/client-address.ts";
import { followKeyChanges } from "./auth/key-changes.ts";
import { createClock } from "./clock.ts";
import { type Config, listenUrl } from "./config/config.ts";
import { followFiles } from "./config/follow-files.ts";
import type { TlsFiles } from "./config/tls.ts";
import { createDocsSite } from "./docs-site/docs-site.ts";
import type { Clock } from "./domain/ports.ts";
import type { ServerActivity } from "./domain/servers.ts";
import { yieldToEventLoop } from "./event-loop.ts";
import { HttpServer, slowRejectedClients } from "./http1/index.ts";
import { deleteRegularly } from "./observe/audit-trail.ts";
import { logConnectionLimit, logKeyChanges, watchFloods } from "./observe/event-reports.ts";
import { createLog, type Log } from "./observe/log.ts";
import { AppMetrics } from "./observe/metrics.ts";
import { RequestLog } from "./observe/request-log.ts";
import { UsageRecorder } from "./observe/usage-history.ts";
import type { Setting } from "./operator/operations.ts";
import type { AdminCredentials, AdminListener } from "./operator/start-admin.ts";
import { createHttpApp } from "./petstore/app.ts";
import { staticRoutes } from "./petstore/static-routes.ts";

export interface App extends Pick<
  Adapters,
  "keys" | "corrections" | "operators" | "settings" | "usageHistory" | "failed"
> {
  /** The base URL that clients use, such as http://127.0.0.1:8080/v1. */
  readonly url: string;
  readonly metrics: AppMetrics;
  /** Undefined if it is off. */
  readonly admin: AdminListener | undefined;
  /** Finishes the requests in progress, saves usage and its history, and closes the databases. */
  close(): Promise<void>;
}

interface AppOptions {
  readonly clock?: Clock;
  readonly log?: Log;
  readonly requestTimeoutMs?: number;
  /** Shorter in tests: timeouts of connections are counted in seconds of this length. */
  readonly secondMs?: number;
  /** What the console shows of the settings. */
  readonly shownSettings?: readonly Setting[];
}

/** Clients that wait for the server get their responses before it does anything else. */
const FIRST_RESPONSES_MS = 5;

/** The composition root: Config → adapters → services → server. */
export async function startApp(config: Config, options: AppOptions = {}): Promise<App> {
  const log = options.log ?? createLog();
  const clock = options.clock ?? createClock({ onStep: (byMs) => log.event("clock.changed", { byMs }) });
  const adapters = await openAdapters(config, clock, log);
  try {
    return await serveOn(adapters, config, { ...options, clock, log });
  } catch (error) {
    await adapters
      .close()
      .catch((closeError: unknown) => log.event("server.close-failed", { error: closeError }));
    throw error;
  }
}

/** Closing the app closes the adapters. */
export async function serveOn(
  adapters: Adapters,
  config: Config,
  { clock, log, requestTimeoutMs, secondMs, shownSettings = [] }: AppOptions & { clock: Clock; log: Log },
): Promise<App> {
  const { store, keys, petJson, rateLimiter, usageHistory, audit, retentionNow } = adapters;
  const { environment, plans } = config;
  const { peerOf } = new Addresses(config.trustedProxies);
  const authenticator = await Authenticator.open({ keys, environment, plans, clock, rateLimiter });
  const { accessLog: file, accessLogOmit: omit } = config;
  const accessLog =
    file === undefined
      ? undefined
      : await (await import("./observe/access-log.ts")).openAccessLog({ file, omit, log });
  const { host, port, drainDelayMs, requestLogBytes: maxBytes } = config;
  const requestLog = maxBytes === 0 ? undefined : new RequestLog({ maxBytes, now: clock.now.bind(clock) });
  const tls = config.tls && (await import("./config/tls.ts")).readTlsFiles(config.tls);
  // All that must be read or written to start comes before: a server that serves does not end when a database fails.
  const credentials = await openCredentials(adapters, config, { clock, log });
  const server = new HttpServer({
    host,
    port,
    handler: startupHandler,
    headerLines: SECURITY_HEADER_LINES,
    tls,
    maxConnections: config.maxConnections,
    maxConnectionsPerPeer: config.maxConnectionsPerAddress,
    peerOf,
    onLimit: (event) => logConnectionLimit(log, event),
    createPacer: slowRejectedClients,
    ...(secondMs !== undefined && { secondMs }),
    onError: (error) => log.event("connection.failed", { error }),
  });
  if (config.maxConnections !== undefined && server.maxConnections < config.maxConnections) {
    log.event("connections.limit-lowered", { maxConnections: server.maxConnections });
  }
  const metrics = new AppMetrics({
    version: packageJson.version,
    environment,
    server,
    authenticator,
    adapters,
    isApiPath: (path) => PETSTORE_API.has(path),
    statuses: RESPONSE_STATUSES,
    clock,
  });
  adapters.bans.onRecord = metrics.requests.countBan;
  adapters.servers.activity = () => {
    return { ...activityOf(server, metrics), ...(config.admin ? admin?.signedUrl() : { adminUrl: null }) };
  };
  let admin: AdminListener | undefined;
  const baseUrl = config.publicUrl ?? listenUrl(host, server.port, { isTls: config.tls !== undefined });
  const docsSettings = {
    environment,
    baseUrl,
    plans,
    ban: config.ban,
    maxConnectionsPerAddress: config.maxConnectionsPerAddress,
    otherUrl: config.otherEnvironmentUrl,
  };
  const usageRecorder = new UsageRecorder({ store: usageHistory, clock, log });
  const { auditRetentionMs } = config;
  const usageRetention = deleteRegularly(
    () => usageHistory.deleteOldUsage(retentionNow()),
    (error) => log.event("usage-history.delete-failed", { error }),
  );
  const auditRetention = deleteRegularly(
    async () => auditRetentionMs !== undefined && audit.deleteAudit(retentionNow() - auditRetentionMs),
    (error) => log.event("audit.delete-failed", { error }),
  );
  server.handler = createHttpApp({
    authenticator,
    rateLimiter,
    plans,
    store,
    petJson,
    clock,
    log,
    baseUrl,
    requestTimeoutMs,
    corsOrigins: config.corsOrigins,
    onUnauthenticated: watchFloods(log),
    observers: [
      metrics.requests.observe,
      usageRecorder.observe,
      ...(accessLog ? [accessLog.observe] : []),
      ...(requestLog ? [requestLog.observe] : []),
    ],
    onProtocolError: metrics.requests.countProtocolError,
    responseCacheStatistics: metrics.responseCache,
    staticRouteAt: staticRoutes({
      docsSettings,
      docsPages: createDocsSite(docsSettings),
      isShuttingDown: () => server.isShuttingDown,
    }),
  });
  const keyChanges = followKeyChanges({
    authenticator,
    rateLimiter,
    clock,
    onChanges: (changed) => logKeyChanges(log, changed, clock.now()),
    onOtherCopy(copy) {
      if (copy.revision < copy.revisionBefore) log.event("database.changes-lost", { ...copy });
      admin?.forgetAccess();
    },
    onUnreadable: (error) => log.event("key-changes.unreadable", { error }),
    onReadable: () => log.event("key-changes.readable"),
    onUnban: (keyId) => log.event("key.unbanned", { keyId }),
    onUnbanError: (keyId, error) => log.event("key.unban-failed", { keyId, error }),
  });
  const stopPublic = async (delayMs: number) => {
    await server.close(delayMs);
    await Promise.all([usageRetention.close(), auditRetention.close()]);
    metrics.stop();
    keyChanges.stop();
  };
  // The code of the admin listener and of the output takes 40 ms to load.
  await Bun.sleep(FIRST_RESPONSES_MS);
  await yieldToEventLoop();
  try {
    if (config.admin && credentials) {
      const { startAdmin } = await import("./operator/start-admin.ts");
      admin = startAdmin({
        ...adapters,
        config,
        admin: config.admin,
        credentials,
        metrics,
        requestLog,
        publicUrl: baseUrl,
        address: new URL(listenUrl(host, server.port)).host,
        startedAt: clock.now(),
        shownSettings,
        clock,
        log,
        isDraining: () => server.isShuttingDown,
        applyKeyChanges: () => keyChanges.applyNow(),
        tls,
        peerOf,
      });
      adapters.announce();
    }
  } catch (error) {
    await stopPublic(0);
    throw error;
  }
  const servers = admin ? [server, admin] : [server];
  const stopFollowingTls = config.tls && (await followCertificate(config.tls, servers, log));

  return {
    ...adapters,
    url: baseUrl,
    metrics,
    admin,
    async close() {
      await stopPublic(drainDelayMs);
      await admin?.close();
      stopFollowingTls?.();
      await usageRecorder.close().catch((error: unknown) => log.event("usage-history.incomplete", { error }));
      await accessLog?.close();
      await adapters.close();
    },
  };
}

function activityOf(server: HttpServer, { requests, live }: AppMetrics): ServerActivity {
  const { limited, banned, serverError, ...others } = requests.totals();
  const rejections = limited + banned;
  const { latencies, requestsPerSecond } = live.recent();
  return {
    adminUrl: undefined,
    connections: server.statistics.connections,
    requestsPerSecond,
    requests: others.success + others.clientError + rejections + serverError,
    rejections,
    serverErrors: serverError,
    latencies: [...latencies.entries()].filter(([, count]) => count > 0),
  };
}

// Code that few servers need is imported when it is used, so that the others start sooner.

async function openCredentials(
  { operators, settings }: Adapters,
  config: Config,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<AdminCredentials | undefined> {
  const { admin } = config;
  if (admin === undefined) return undefined;
  const { importMetricsToken, openTokens } = await import("./operator/token.ts");
  const { ServerSecret } = await import("./operator/server-secret.ts");
  const tokens = await openTokens({ directory: config.directory, admin, operators, clock, log });
  if (admin.metricsTokenFile !== undefined)
    await importMetricsToken(admin.metricsTokenFile, { operators, clock, log });
  return { tokens, serverSecret: await ServerSecret.open(settings) };
}

async function followCertificate(
  files: TlsFiles,
  servers: readonly Pick<HttpServer, "setTlsCertificate">[],
  log: Log,
): Promise<() => void> {
  const { readTlsFiles } = await import("./config/tls.ts");
  return followFiles(Object.values(files), {
    everyMs: 1_000,
    read: () => readTlsFiles(files),
    onChange(contents) {
      for (const server of servers) server.setTlsCertificate(contents);
      log.event("tls.certificate-changed", { file: files.certFile });
    },
    onError: (error) => log.event("tls.certificate-invalid", { error }),
  });
}
