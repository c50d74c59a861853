import { createClock } from "./clock.ts";
import { type Config, listenUrl, serversOf } from "./config/config.ts";
import type { Clock, KeyStore, SettingsStore, UsageHistoryStore } from "./domain/ports.ts";
import { type Adapters, openAdapters } from "./adapters.ts";
import { Addresses } from "./auth/client-address.ts";
import { Authenticator } from "./auth/authenticator.ts";
import { followKeyChanges } from "./auth/key-changes.ts";
import { createLog, type Log } from "./log.ts";
import { createHttpApp, startupHandler } from "./http/app.ts";
import { headerLine, HttpServer, type LimitEvent } from "./http1/index.ts";
import type { TlsFiles } from "./config/tls.ts";
import { followTlsFiles, readTlsFiles } from "./tls-files.ts";
import { UsageRecorder } from "./usage-history/usage-recorder.ts";

export interface App {
  /** The base URL that clients use, such as http://127.0.0.1:8080/v1. */
  readonly url: string;
  readonly keys: KeyStore;
  readonly settings: SettingsStore;
  readonly usageHistory: UsageHistoryStore;
  /** Finishes the requests in progress, saves usage and its history, and closes the databases. */
  close(): Promise<void>;
}

export interface AppOptions {
  readonly clock?: Clock;
  readonly log?: Log;
  readonly requestTimeoutMs?: number;
}

/** On every response. */
const SECURITY_HEADER_LINES = headerLine("X-Content-Type-Options", "nosniff");

/** The composition root: Config → adapters → services → server. */
export async function startApp(config: Config, options: AppOptions = {}): Promise<App> {
  const log = options.log ?? createLog();
  const clock = options.clock ?? systemClock(log);
  const adapters = await openAdapters(config, clock, log);
  try {
    return await serveOn(adapters, config, { ...options, clock, log });
  } catch (error) {
    await adapters.close().catch((closeError: unknown) => log.error("cannot close", { error: closeError }));
    throw error;
  }
}

/** Closing the app closes the adapters. */
export async function serveOn(
  adapters: Adapters,
  config: Config,
  { clock, log, requestTimeoutMs }: AppOptions & { clock: Clock; log: Log },
): Promise<App> {
  const { store, keys, settings, petJson, rateLimiter, usageHistory } = adapters;
  const { environment, plans } = config;
  const addresses = new Addresses(config.trustedProxies);
  const authenticator = await Authenticator.open({ keys, environment, plans, clock, addresses, rateLimiter });
  const { host, port, drainDelayMs } = config;
  const server = new HttpServer({
    host,
    port,
    handler: startupHandler,
    headerLines: SECURITY_HEADER_LINES,
    tls: config.tls && readTlsFiles(config.tls),
    maxConnections: config.maxConnections,
    maxConnectionsPerPeer: config.maxConnectionsPerAddress,
    peerOf: (address) => addresses.peerOf(address),
    onLimit: (event) => logConnectionLimit(log, event),
    onError: (error) => log.error("a connection failed", { error }),
  });
  if (config.maxConnections !== undefined && server.maxConnections < config.maxConnections) {
    log.warn("--max-connections is lowered to what the limit of open files allows", {
      maxConnections: server.maxConnections,
    });
  }
  const baseUrl = config.publicUrl ?? listenUrl(host, server.port, { isTls: config.tls !== undefined });
  const usageRecorder = recordUsage(usageHistory, clock, log);
  server.handler = createHttpApp({
    authenticator,
    rateLimiter,
    addresses,
    plans,
    store,
    petJson,
    clock,
    log,
    baseUrl,
    requestTimeoutMs,
    docsSettings: {
      environment,
      servers: serversOf(config, baseUrl),
      plans,
      ban: config.ban,
      maxConnectionsPerAddress: config.maxConnectionsPerAddress,
    },
    isShuttingDown: () => server.isShuttingDown,
    observe: usageRecorder.observe,
  });
  const stopPolling = followKeyChanges({
    authenticator,
    rateLimiter,
    clock,
    onUnreadable: (error) => log.warn("key changes cannot be read; trying again", { error }),
    onReadable: () => log.info("key changes can be read again"),
    onUnbanError: (keyId, error) => log.error("a key cannot be unbanned; trying again", { keyId, error }),
  });
  const stopFollowingTls = config.tls && followCertificate(config.tls, server, log);

  return {
    url: baseUrl,
    keys,
    settings,
    usageHistory,
    async close() {
      await server.close(drainDelayMs);
      stopPolling();
      stopFollowingTls?.();
      await usageRecorder
        .close()
        .catch((error: unknown) => log.error("the usage history is incomplete", { error }));
      await adapters.close();
    },
  };
}

function systemClock(log: Log): Clock {
  return createClock({
    onStep: (byMs) => log.warn("the system clock was changed; windows and bans keep their length", { byMs }),
  });
}

function recordUsage(store: UsageHistoryStore, clock: Clock, log: Log): UsageRecorder {
  return new UsageRecorder({
    store,
    clock,
    onFailure: (error) => log.warn("the usage history cannot be saved; trying again", { error }),
    onRecovery: (lostRequests) => log.info("the usage history can be saved again", { lostRequests }),
  });
}

function followCertificate(files: TlsFiles, server: HttpServer, log: Log): () => void {
  return followTlsFiles(files, {
    onChange(contents) {
      server.setTlsCredentials(contents);
      log.info("new connections get the new TLS certificate", { file: files.certFile });
    },
    onError: (error) => log.error("the new TLS certificate cannot be used; the one before stays", { error }),
  });
}

function logConnectionLimit(log: Log, { limit, peer, isOver, evicted, rejected }: LimitEvent): void {
  if (limit === "all") {
    if (isOver) log.info("connections are below --max-connections again", { evicted, rejected });
    else log.warn("--max-connections is reached; new connections replace idle ones or are closed");
  } else if (isOver) {
    log.info("no address reaches --max-connections-per-address any more", { rejected });
  } else {
    log.warn("an address has reached --max-connections-per-address; its new connections are closed", {
      address: peer,
    });
  }
}
