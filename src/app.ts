import packageJson from "../package.json" with { type: "json" };
import { hostname } from "node:os";
import { type Adapters, openAdapters } from "./adapters/open-adapters.ts";
import type { Closable, ServerContext } from "./app/context.ts";
import { followCertificate, startFollowing } from "./app/following.ts";
import { openObservers, startMetrics } from "./app/observers.ts";
import { reportActivity, serverServices } from "./app/operator-services.ts";
import { listenForClients } from "./app/public-listener.ts";
import { startWebhook } from "./app/webhook.ts";
import { Authenticator } from "./auth/authenticator.ts";
import { Addresses } from "./auth/client-address.ts";
import { LastBackup } from "./background/last-backup.ts";
import { startRegularWork } from "./background/regular-work.ts";
import { ReportingRegister } from "./background/server-register.ts";
import { ChangeReader } from "./changes/change-reader.ts";
import { createClock } from "./clock.ts";
import { auditRetentionOf } from "./config/audit-retention.ts";
import type { Config } from "./config/config.ts";
import type { Clock } from "./domain/ports/clock.ts";
import { ActivityCollector } from "./domain/servers.ts";
import { createLog, type Log } from "./observe/log.ts";
import type { AppMetrics } from "./observe/metrics.ts";
import { answerWhenAsked } from "./operator/answer-when-asked.ts";
import type { OperatorRate } from "./operator/operator-rates.ts";
import type { Setting } from "./operator/operations.ts";
import type { AdminListener } from "./operator/start-admin.ts";
import { CacheStatistics } from "./runtime/bounded-cache.ts";
import { scheduler, yieldToEventLoop } from "./runtime/scheduler.ts";

export interface App extends Pick<
  Adapters,
  | "keys"
  | "operatorPetStore"
  | "operators"
  | "policies"
  | "policy"
  | "questions"
  | "storedValues"
  | "usageHistory"
  | "failed"
> {
  /** The base URL that clients use, such as http://127.0.0.1:8080/v1. */
  readonly url: string;
  readonly metrics: AppMetrics;
  /** Undefined if the listener for operators is off. */
  readonly admin: AdminListener | undefined;
  /** Finishes the requests in progress, saves quotas and the usage history, and closes the databases. */
  close(): Promise<void>;
}

interface AppOptions {
  /** Replaces the clocks of the machine and of PostgreSQL. */
  readonly clock?: Clock;
  readonly log?: Log;
  readonly requestTimeoutMs?: number;
  /** The length of the seconds in which timeouts of connections are counted; shorter in tests. */
  readonly secondMs?: number;
  /** The rate of each operator; higher in tests. */
  readonly operatorRate?: OperatorRate;
  /** The settings that the console shows. */
  readonly shownSettings?: readonly Setting[];
  /** Whether the console says that this is a demo. */
  readonly isDemo?: boolean;
}

/**
 * The composition root: Config → adapters → services → server. Code that not every server needs is imported when it is
 * used, so that others start sooner.
 */
export async function startApp(config: Config, options: AppOptions = {}): Promise<App> {
  const log = options.log ?? createLog();
  const clock = options.clock ?? createClock({ onStep: (byMs) => log.event("clock.changed", { byMs }) });
  const adapters = await openAdapters(config.data, clock, log, options.clock);
  try {
    return await serveOn(adapters, config, { ...options, clock, log });
  } catch (error) {
    await adapters
      .close()
      .catch((closeError: unknown) => log.event("server.close-failed", { error: closeError }));
    throw error;
  }
}

/** Closing the app closes the adapters. If it cannot start, they stay open. */
export async function serveOn(
  adapters: Adapters,
  config: Config,
  options: AppOptions & { clock: Clock; log: Log },
): Promise<App> {
  // Parts close in reverse order, also those that have started when a later one cannot start.
  await using parts = new AsyncDisposableStack();
  const add = <Part extends Closable | undefined>(part: Part) =>
    parts.adopt(part, async (each) => each?.close());
  const { clock, log, shownSettings = [], requestTimeoutMs, secondMs, operatorRate } = options;
  const { directory, environment, postgres } = config.data;
  const activity = new ActivityCollector();
  const servers = add(await registerServer(adapters, clock, activity));
  const context: ServerContext = { adapters, environment, clock, log, servers };
  const { peerOf } = new Addresses(config.trustedProxies);
  const responseCacheStatistics = new CacheStatistics();

  // What has to be read or written to start comes first: once a server listens, a database that fails does not end it.
  const { keys, operators, policy, rateLimiter } = adapters;
  const auditRetentionMs = await auditRetentionOf(config.auditRetentionMs, adapters.storedValues);
  const authenticator = new Authenticator({ keys, environment, policy, clock, rateLimiter });
  const changeReader = await ChangeReader.open({ keys, authenticator, clock });
  const { accessLog, accessLogOmit, requestLogBytes, tracing, tls: tlsFiles } = config;
  const isTls = tlsFiles !== undefined;
  const observers = add(
    await openObservers({ accessLog, accessLogOmit, requestLogBytes, tracing, isTls }, context),
  );
  const tls = tlsFiles && (await import("./config/tls.ts")).readTlsFiles(tlsFiles);
  const operatorAccess = config.admin && {
    admin: config.admin,
    credentials: await (
      await import("./operator/sign-in/open-credentials.ts")
    ).openAdminCredentials(config.admin, { directory, operators, clock, log }),
  };

  const delivery = add(
    config.webhook &&
      (await startWebhook({ ...config.webhook, isOnlyServer: postgres === undefined }, context)),
  );
  const webhook = delivery?.sender;
  /** Resolves to true when every listener is open, and to false if that fails. */
  const start = Promise.withResolvers<boolean>();
  const changes = add(startFollowing(context, authenticator, changeReader));
  const { host, port, publicUrl, otherEnvironmentUrl, corsOrigins, securityContacts } = config;
  const { maxConnections, maxConnectionsPerAddress } = config;
  const measured = { authenticator, observers, responseCacheStatistics };
  const listener = add(
    listenForClients(
      {
        host,
        port,
        publicUrl,
        otherEnvironmentUrl,
        maxConnections,
        maxConnectionsPerAddress,
        corsOrigins,
        securityContacts,
        tls,
        peerOf,
        requestTimeoutMs,
        secondMs,
      },
      { ...context, ...measured, changes, hasStarted: start.promise },
    ),
  );
  const { server, url } = listener;
  parts.defer(() => start.resolve(false));
  const lastBackup = add(new LastBackup(adapters.storedValues));
  const metrics = add(startMetrics({ ...measured, webhook, server, lastBackup }, context));
  add({ close: directory.saveUrl(listener.origin) });
  const reported = { listener, metrics, shownSettings };
  add(reportActivity(activity, { ...reported, hasAdmin: operatorAccess !== undefined }));

  await respondToWaitingClients();
  const isDemo = options.isDemo === true;
  const services = serverServices({ ...reported, isDemo, observers, webhook, changes }, context);
  const admin = add(
    operatorAccess &&
      (await import("./operator/start-admin.ts")).startAdmin({
        ...services,
        ...operatorAccess,
        activity,
        operatorRate,
        tls,
        peerOf,
      }),
  );
  start.resolve(true);
  add(answerWhenAsked(services, changes.onQuestions));
  // Commands and other servers know at once where it listens.
  await servers.report();
  if (tlsFiles && tls) {
    const listeners = admin ? [server, admin] : [server];
    add(await followCertificate({ files: tlsFiles, first: tls }, listeners, context));
  }
  const { retentionNow } = adapters;
  add(startRegularWork({ stores: adapters, auditRetentionMs, retentionNow, clock, log }));

  const started = parts.move();
  return {
    ...adapters,
    url,
    metrics,
    admin,
    async close() {
      // Requests in progress need all parts, so the server is drained first.
      await server.close(config.drainDelayMs);
      await started.disposeAsync().finally(() => adapters.close());
    },
  };
}

function registerServer(
  { serverReports: reports }: Adapters,
  clock: Clock,
  activity: ActivityCollector,
): Promise<ReportingRegister> {
  const { version } = packageJson;
  const self = { id: crypto.randomUUID(), name: hostname(), version, startedAt: clock.now() };
  return ReportingRegister.open(self, { reports, clock, activity: () => activity.collect() });
}

/** Clients that wait for the server get their responses before it loads more code, which takes 40 ms. */
async function respondToWaitingClients(): Promise<void> {
  await scheduler.sleep(5);
  await yieldToEventLoop();
}
