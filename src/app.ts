import { OPERATION_PATHS, PETSTORE_API, RESPONSE_STATUSES } from "./petstore/operations.ts";
import packageJson from "../package.json" with { type: "json" };
import { hostname } from "node:os";
import { type Adapters, openAdapters } from "./adapters/open-adapters.ts";
import { SECURITY_HEADER_LINES } from "./api/responses.ts";
import { Authenticator } from "./auth/authenticator.ts";
import { Addresses } from "./auth/client-address.ts";
import { ChangeReader } from "./changes/change-reader.ts";
import { followChanges, type ChangeFollower } from "./changes/follow-changes.ts";
import { CacheStatistics } from "./runtime/bounded-cache.ts";
import { createClock } from "./clock.ts";
import { auditRetentionOf } from "./config/audit-retention.ts";
import type { Config } from "./config/config.ts";
import { type FollowedSetting, followSetting } from "./config/follow-files.ts";
import { listenUrl, originOf } from "./config/listen-urls.ts";
import { WEBHOOK_OPTIONS } from "./config/options.ts";
import { readFromFile } from "./config/parse-options.ts";
import { reportedSettings } from "./config/reported-settings.ts";
import { createDocsSite } from "./docs-site/docs-site.ts";
import type { Clock } from "./domain/ports/clock.ts";
import { ActivityCollector } from "./domain/servers.ts";
import { scheduler, yieldToEventLoop } from "./runtime/scheduler.ts";
import { HttpServer, type RequestHandler, slowRejectedClients, type TlsCertificate } from "./http1/index.ts";
import { watchFloods } from "./observe/authentication-floods.ts";
import { logConnectionLimit, logKeyChanges, reportSettingFiles } from "./observe/event-reports.ts";
import { LastBackup } from "./background/last-backup.ts";
import { createLog, type Log } from "./observe/log.ts";
import { AppMetrics } from "./observe/metrics.ts";
import { startRegularWork } from "./background/regular-work.ts";
import { ReportingRegister } from "./background/server-register.ts";
import { RequestLog } from "./observe/request-log.ts";
import { RequestMetrics } from "./observe/request-metrics.ts";
import { activityOf } from "./observe/server-activity.ts";
import { UsageRecorder } from "./background/usage-recorder.ts";
import type { WebhookSender } from "./background/webhook-delivery.ts";
import { answerWhenAsked } from "./operator/answer-when-asked.ts";
import type { ServerServices } from "./operator/services.ts";
import type { Setting } from "./operator/operations.ts";
import type { OperatorRate } from "./operator/operator-rates.ts";
import type { AdminCredentials } from "./operator/sign-in/open-credentials.ts";
import type { AdminListener } from "./operator/start-admin.ts";
import { PETSTORE_DOCUMENTS } from "./petstore/documents.ts";
import { createEndpoints } from "./petstore/handlers.ts";
import { PublicApp } from "./public/public-app.ts";
import { staticRoutes } from "./public/static-routes.ts";

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

/** What every part of a server is made of. */
interface Context extends AppOptions {
  readonly adapters: Adapters;
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  /** What this server reports to the others. */
  readonly activity: ActivityCollector;
  readonly servers: ReportingRegister;
}

interface Closable {
  close(): void | Promise<void>;
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
  const { clock } = options;
  const activity = new ActivityCollector();
  const servers = add(await registerServer(adapters, clock, activity));
  const context = { ...options, adapters, config, activity, servers };
  const { peerOf } = new Addresses(config.trustedProxies);
  const responseCacheStatistics = new CacheStatistics();

  // What has to be read or written to start comes first: once a server listens, a database that fails does not end it.
  const { keys, policy, rateLimiter } = adapters;
  const { environment } = config.data;
  const auditRetentionMs = await auditRetentionOf(config.auditRetentionMs, adapters.storedValues);
  const authenticator = new Authenticator({ keys, environment, policy, clock, rateLimiter });
  const changeReader = await ChangeReader.open({ keys, authenticator, clock });
  const observers = add(await openObservers(context));
  const tls = config.tls && (await import("./config/tls.ts")).readTlsFiles(config.tls);
  const credentials = await openCredentials(context);

  const webhook = add(await startWebhook(context, add(followWebhookSecrets(context))));
  /** Resolves to true when every listener is open, and to false if that fails. */
  const start = Promise.withResolvers<boolean>();
  const changes = add(startFollowing(context, authenticator, changeReader));
  const common = { ...context, authenticator, changes, observers, responseCacheStatistics, tls, peerOf };
  const server = add(listen({ ...common, hasStarted: start.promise }));
  parts.defer(() => start.resolve(false));
  const lastBackup = add(new LastBackup(adapters.storedValues));
  const metrics = add(startMetrics({ ...common, webhook, server, lastBackup }));
  const origin = originOf({ host: config.host, port: server.port, isTls: tls !== undefined });
  add({ close: config.data.directory.saveUrl(origin) });
  add(reportActivity(context, server, metrics));

  await respondToWaitingClients();
  const services = serverServices({ ...context, observers, webhook, changes, server, metrics });
  const admin = add(await openAdmin(services, { ...context, credentials, tls, peerOf }));
  start.resolve(true);
  add(answerWhenAsked(services, changes.onQuestions));
  // Commands and other servers know at once where it listens.
  await servers.report();
  add(await followCertificate({ ...context, tls }, admin ? [server, admin] : [server]));
  add(startWork(context, auditRetentionMs));

  const started = parts.move();
  return {
    ...adapters,
    url: urlOf(config, server),
    metrics,
    admin,
    async close() {
      // Requests in progress need all parts, so the server is drained first.
      await server.close(config.drainDelayMs);
      await started.disposeAsync().finally(() => adapters.close());
    },
  };
}

function urlOf({ publicUrl, host, tls }: Config, { port }: HttpServer): string {
  return publicUrl ?? listenUrl(host, port, { isTls: tls !== undefined });
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

/** The observers of each request. */
type Observers = Awaited<ReturnType<typeof openObservers>>;

async function openObservers(context: Context) {
  const { adapters, config, clock, log, servers } = context;
  const { accessLog: file, accessLogOmit: omit, requestLogBytes: maxBytes } = config;
  const requests = new RequestMetrics({
    operations: RESPONSE_STATUSES,
    isApiPath: (path) => PETSTORE_API.has(path),
  });
  const usage = new UsageRecorder({ store: adapters.usageHistory, clock, log });
  const accessLog =
    file === undefined
      ? undefined
      : await (await import("./observe/access-log.ts")).openAccessLog({ file, omit, log });
  /** Undefined if the request log is off. */
  const requestLog = maxBytes === 0 ? undefined : new RequestLog({ maxBytes, now: () => clock.now() });
  const tracer =
    config.tracing &&
    new (await import("./observe/tracer.ts")).Tracer({
      ...config.tracing,
      omit,
      environment: config.data.environment,
      serverId: servers.self.id,
      isTls: config.tls !== undefined,
      routes: OPERATION_PATHS,
      log,
    });
  return {
    requests,
    requestLog,
    tracer,
    all: [requests, usage, accessLog, requestLog, tracer].flatMap((each) => each?.observe ?? []),
    async close() {
      await usage.close().catch((error: unknown) => log.event("usage-history.incomplete", { error }));
      await Promise.all([accessLog?.close(), tracer?.close()]);
    },
  };
}

/** Returns undefined if the listener for operators is off. */
async function openCredentials(context: Context): Promise<AdminCredentials | undefined> {
  const { config, clock, log } = context;
  const { operators } = context.adapters;
  if (config.admin === undefined) return undefined;
  const { openAdminCredentials } = await import("./operator/sign-in/open-credentials.ts");
  return openAdminCredentials(config.admin, { directory: config.data.directory, operators, clock, log });
}

/** The secrets with which events are signed. */
function followWebhookSecrets({ config: { webhook }, log }: Context): FollowedSetting<readonly Uint8Array[]> {
  return followSetting(
    { setting: "webhook-secret-file", file: webhook?.secretFile, first: webhook?.secrets ?? [] },
    (file) => readFromFile(WEBHOOK_OPTIONS["webhook-secret"], file),
    reportSettingFiles(log),
  );
}

/** Returns undefined if no webhook is configured. */
async function startWebhook(
  { adapters, config, clock, log, servers }: Context,
  secrets: FollowedSetting<readonly Uint8Array[]>,
): Promise<WebhookSender | undefined> {
  if (config.webhook === undefined) return undefined;
  const { WebhookSender } = await import("./background/webhook-delivery.ts");
  const { webhooks, audit, retentionNow } = adapters;
  return new WebhookSender({
    ...config.webhook,
    secrets: () => secrets.current,
    environment: config.data.environment,
    webhooks,
    audit,
    isOnlyServer: config.data.postgres === undefined,
    server: servers.self.id,
    clock,
    retentionNow,
    log,
  });
}

/** The parts of a server. Each is made of the context and of parts before it. */
interface Parts {
  /** Undefined if the listener for operators is off. */
  readonly credentials: AdminCredentials | undefined;
  readonly authenticator: Authenticator;
  readonly observers: Observers;
  readonly tls: TlsCertificate | undefined;
  readonly peerOf: Addresses["peerOf"];
  readonly responseCacheStatistics: CacheStatistics;
  /** Undefined if no webhook is configured. */
  readonly webhook: WebhookSender | undefined;
  readonly changes: ChangeFollower;
  /** Whether every listener is open; pending during the start. */
  readonly hasStarted: Promise<boolean>;
  readonly server: HttpServer;
  readonly lastBackup: LastBackup;
  readonly metrics: AppMetrics;
}

type With<Part extends keyof Parts> = Context & Pick<Parts, Part>;

type PublicParts = With<
  "authenticator" | "observers" | "tls" | "peerOf" | "responseCacheStatistics" | "changes" | "hasStarted"
>;

function listen(options: PublicParts): HttpServer {
  const { config, log, tls, peerOf, secondMs } = options;
  const { host, port, maxConnections } = config;
  const server = new HttpServer({
    host,
    port,
    createHandler: (listening) => publicHandler(listening, options),
    headerLines: SECURITY_HEADER_LINES,
    tls,
    maxConnections,
    maxConnectionsPerPeer: config.maxConnectionsPerAddress,
    peerOf,
    onLimit: (event) => logConnectionLimit(log, event),
    createPacer: slowRejectedClients,
    ...(secondMs !== undefined && { secondMs }),
    onError: (error) => log.event("connection.failed", { error }),
  });
  if (maxConnections !== undefined && server.maxConnections < maxConnections) {
    log.event("connections.limit-lowered", { maxConnections: server.maxConnections });
  }
  return server;
}

function publicHandler(server: HttpServer, options: PublicParts): RequestHandler {
  const { adapters, config, authenticator, observers, responseCacheStatistics, clock, log } = options;
  const { rateLimiter, policy } = adapters;
  const baseUrl = urlOf(config, server);
  const { environment } = config.data;
  const docsSettings = { ...config, environment, baseUrl, policy, now: () => clock.now() };
  return new PublicApp({
    api: PETSTORE_API,
    endpoints: createEndpoints({ ...adapters, clock, baseUrl, responseCacheStatistics }),
    authenticator,
    rateLimiter,
    policy,
    whenCurrent: options.changes.whenCurrent,
    clock,
    log,
    requestTimeoutMs: options.requestTimeoutMs,
    corsOrigins: config.corsOrigins,
    onUnauthenticated: watchFloods(log),
    startTrace: observers.tracer && ((request) => observers.tracer?.start(request)),
    observers: observers.all,
    onProtocolError: observers.requests.countProtocolError,
    staticRouteAt: staticRoutes({
      allowed: PETSTORE_API.allowed,
      documents: PETSTORE_DOCUMENTS,
      docsSettings,
      docsPages: createDocsSite(docsSettings),
      securityContacts: config.securityContacts,
      clock,
      isServing: async () => (await options.hasStarted) && !server.isShuttingDown,
    }),
  });
}

function startMetrics(
  options: With<
    "authenticator" | "observers" | "responseCacheStatistics" | "webhook" | "server" | "lastBackup"
  >,
): AppMetrics {
  const { adapters, config, clock, log, servers, authenticator, observers, responseCacheStatistics } =
    options;
  const { webhook, server, lastBackup } = options;
  return new AppMetrics({
    version: packageJson.version,
    environment: config.data.environment,
    server,
    servers,
    authenticator,
    adapters,
    requests: observers.requests,
    responseCacheStatistics,
    webhook,
    tracer: observers.tracer,
    log,
    lastBackup,
    clock,
  });
}

function startFollowing(
  { adapters, clock, log }: Context,
  authenticator: Authenticator,
  reader: ChangeReader,
): ChangeFollower {
  const { rateLimiter, policies, applyPolicy, petJson } = adapters;
  return followChanges({
    reader,
    authenticator,
    rateLimiter,
    clock,
    readPolicy: () => policies.readPolicy(),
    applyPolicy,
    followStore: () => petJson.checkOtherProcesses?.(),
    onChanges: (changed) => logKeyChanges(log, changed, clock.now()),
    onReplacement(replacement) {
      if (replacement.revision < replacement.revisionBefore)
        log.event("database.changes-lost", { ...replacement });
    },
    onUnreadable: (error) => log.event("key-changes.unreadable", { error }),
    onReadable: () => log.event("key-changes.readable"),
    onUnban: (keyId) => log.event("key.unbanned", { keyId }),
    onUnbanError: (keyId, error) => log.event("key.unban-failed", { keyId, error }),
  });
}

/** Returns undefined without TLS. */
async function followCertificate(
  { config: { tls: files }, clock, log, tls }: With<"tls">,
  servers: readonly Pick<HttpServer, "setTlsCertificate">[],
): Promise<Closable | undefined> {
  if (files === undefined || tls === undefined) return undefined;
  const { followTlsFiles } = await import("./config/tls.ts");
  const { watchCertificate } = await import("./observe/certificate-watch.ts");
  const reports = watchCertificate({ file: files.certFile, cert: tls.cert, clock, log });
  const following = followTlsFiles(files, {
    ...reports,
    onChange(certificate) {
      for (const server of servers) server.setTlsCertificate(certificate);
      reports.onChange(certificate);
    },
  });
  return { close: () => [following, reports].forEach((each) => each.close()) };
}

function startWork({ adapters, clock, log }: Context, auditRetentionMs: number | null): Closable {
  const { retentionNow } = adapters;
  return startRegularWork({ stores: adapters, auditRetentionMs, retentionNow, clock, log });
}

/** Gives the other servers and operators a report of what this server does. */
function reportActivity(context: Context, server: HttpServer, metrics: AppMetrics): Closable {
  const { activity, config, shownSettings = [] } = context;
  const settings = reportedSettings(shownSettings, urlOf(config, server));
  const remove = activity.add(() => ({
    ...activityOf(server, metrics),
    ...settings,
    ...(config.admin === undefined && { adminUrl: null }),
  }));
  return { close: remove };
}

/** Clients that wait for the server get their responses before it loads more code, which takes 40 ms. */
async function respondToWaitingClients(): Promise<void> {
  await scheduler.sleep(5);
  await yieldToEventLoop();
}

/** What operators and other servers may ask about this server. */
function serverServices(
  options: With<"observers" | "webhook" | "changes" | "server" | "metrics">,
): ServerServices {
  const { adapters, config, clock, log, servers, observers, webhook, server, metrics, changes } = options;
  const publicUrl = urlOf(config, server);
  return {
    ...adapters,
    environment: config.data.environment,
    isDemo: options.isDemo === true,
    servers,
    metrics,
    requestLog: observers.requestLog,
    webhook,
    publicUrl,
    address: new URL(listenUrl(config.host, server.port)).host,
    startedAt: clock.now(),
    shownSettings: options.shownSettings ?? [],
    valuesInEffect: {
      port: `${server.port}`,
      "public-url": publicUrl,
      "max-connections": `${server.maxConnections}`,
    },
    clock,
    log,
    isDraining: () => server.isShuttingDown,
    applyChanges: changes.applyNow,
  };
}

/** Returns undefined if the listener for operators is off. */
async function openAdmin(
  services: ServerServices,
  options: With<"credentials" | "tls" | "peerOf">,
): Promise<AdminListener | undefined> {
  const { config, activity, credentials, tls, peerOf, operatorRate } = options;
  if (config.admin === undefined || credentials === undefined) return undefined;
  const { startAdmin } = await import("./operator/start-admin.ts");
  return startAdmin({ ...services, admin: config.admin, credentials, activity, operatorRate, tls, peerOf });
}
