/* The listener for clients. */

import { SECURITY_HEADER_LINES } from "../api/responses.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { ChangeFollower } from "../changes/follow-changes.ts";
import { listenUrl, originOf } from "../config/listen-urls.ts";
import { createDocsSite } from "../docs-site/docs-site.ts";
import {
  HttpServer,
  type HttpServerOptions,
  type RequestHandler,
  slowRejectedClients,
  type TlsCertificate,
} from "../http1/index.ts";
import { watchFloods } from "../observe/authentication-floods.ts";
import { logConnectionLimit } from "../observe/event-reports.ts";
import { PETSTORE_DOCUMENTS } from "../petstore/documents.ts";
import { createEndpoints } from "../petstore/handlers.ts";
import { PETSTORE_API } from "../petstore/operations.ts";
import { PublicApp } from "../public/public-app.ts";
import { staticRoutes } from "../public/static-routes.ts";
import type { CacheStatistics } from "../runtime/bounded-cache.ts";
import type { ServerContext } from "./context.ts";
import type { Observers } from "./observers.ts";

interface ListenerSettings {
  readonly host: string;
  /** 0 means any free port. */
  readonly port: number;
  /** The base URL that clients use; undefined means that of the listener. */
  readonly publicUrl: string | undefined;
  readonly otherEnvironmentUrl: string | undefined;
  readonly maxConnections: number | undefined;
  /** 0 means any number. */
  readonly maxConnectionsPerAddress: number;
  readonly corsOrigins: readonly string[];
  readonly securityContacts: readonly string[];
  readonly tls: TlsCertificate | undefined;
  /** Groups the connections that count together. */
  readonly peerOf: NonNullable<HttpServerOptions["peerOf"]>;
  readonly requestTimeoutMs: number | undefined;
  readonly secondMs: number | undefined;
}

interface PublicParts extends ServerContext {
  readonly authenticator: Authenticator;
  readonly observers: Observers;
  readonly responseCacheStatistics: CacheStatistics;
  readonly changes: ChangeFollower;
  /** Whether every listener is open; pending during the start. */
  readonly hasStarted: Promise<boolean>;
}

export interface PublicListener {
  readonly server: HttpServer;
  /** The base URL that clients use. */
  readonly url: string;
  /** The origin on this machine. */
  readonly origin: string;
  /** The host and port. */
  readonly address: string;
  close(): Promise<void>;
}

export function listenForClients(settings: ListenerSettings, parts: PublicParts): PublicListener {
  const { host, port, tls, peerOf, maxConnections, maxConnectionsPerAddress, secondMs } = settings;
  const { log } = parts;
  const server = new HttpServer({
    host,
    port,
    createHandler: (listening) => publicHandler(listening, settings, parts),
    headerLines: SECURITY_HEADER_LINES,
    tls,
    maxConnections,
    maxConnectionsPerPeer: maxConnectionsPerAddress,
    peerOf,
    onLimit: (event) => logConnectionLimit(log, event),
    createPacer: slowRejectedClients,
    ...(secondMs !== undefined && { secondMs }),
    onError: (error) => log.event("connection.failed", { error }),
  });
  if (maxConnections !== undefined && server.maxConnections < maxConnections) {
    log.event("connections.limit-lowered", { maxConnections: server.maxConnections });
  }
  return {
    server,
    url: urlOf(settings, server),
    origin: originOf({ host, port: server.port, isTls: tls !== undefined }),
    address: new URL(listenUrl(host, server.port)).host,
    close: () => server.close(),
  };
}

function urlOf({ publicUrl, host, tls }: ListenerSettings, { port }: HttpServer): string {
  return publicUrl ?? listenUrl(host, port, { isTls: tls !== undefined });
}

function publicHandler(server: HttpServer, settings: ListenerSettings, parts: PublicParts): RequestHandler {
  const { otherEnvironmentUrl, maxConnectionsPerAddress, corsOrigins, securityContacts } = settings;
  const { adapters, environment, authenticator, observers, responseCacheStatistics, clock, log } = parts;
  const { rateLimiter, policy } = adapters;
  const baseUrl = urlOf(settings, server);
  const docsSettings = {
    environment,
    baseUrl,
    otherEnvironmentUrl,
    policy,
    maxConnectionsPerAddress,
    now: () => clock.now(),
  };
  return new PublicApp({
    api: PETSTORE_API,
    endpoints: createEndpoints({ ...adapters, clock, baseUrl, responseCacheStatistics }),
    authenticator,
    rateLimiter,
    policy,
    whenCurrent: parts.changes.whenCurrent,
    clock,
    log,
    requestTimeoutMs: settings.requestTimeoutMs,
    corsOrigins,
    onUnauthenticated: watchFloods(log),
    startTrace: observers.tracer && ((request) => observers.tracer?.start(request)),
    observers: observers.all,
    onProtocolError: observers.requests.countProtocolError,
    staticRouteAt: staticRoutes({
      allowed: PETSTORE_API.allowed,
      documents: PETSTORE_DOCUMENTS,
      docsSettings,
      docsPages: createDocsSite(docsSettings),
      securityContacts,
      clock,
      isServing: async () => (await parts.hasStarted) && !server.isShuttingDown,
    }),
  });
}
