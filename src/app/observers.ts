import packageJson from "../../package.json" with { type: "json" };
import type { Authenticator } from "../auth/authenticator.ts";
import type { LastBackup } from "../background/last-backup.ts";
import { UsageRecorder } from "../background/usage-recorder.ts";
import type { WebhookSender } from "../background/webhook-delivery.ts";
import type { AccessLogField } from "../domain/logging.ts";
import type { HttpServer } from "../http1/index.ts";
import { AppMetrics } from "../observe/metrics.ts";
import { RequestLog } from "../observe/request-log.ts";
import { RequestMetrics } from "../observe/request-metrics.ts";
import type { TracerOptions } from "../observe/tracer.ts";
import { OPERATION_PATHS, PETSTORE_API, RESPONSE_STATUSES } from "../petstore/operations.ts";
import type { CacheStatistics } from "../runtime/bounded-cache.ts";
import type { ServerContext } from "./context.ts";

interface ObserverSettings {
  /** The path of the access log, or `-` for standard output; undefined if there is none. */
  readonly accessLog: string | undefined;
  /** What neither the access log nor spans have. */
  readonly accessLogOmit: readonly AccessLogField[];
  /** 0 if the request log is off. */
  readonly requestLogBytes: number;
  /** Undefined if no request is traced. */
  readonly tracing: Pick<TracerOptions, "url" | "sample"> | undefined;
  readonly isTls: boolean;
}

/** The observers of each request. */
export type Observers = Awaited<ReturnType<typeof openObservers>>;

export async function openObservers(settings: ObserverSettings, context: ServerContext) {
  const { accessLog: file, accessLogOmit: omit, requestLogBytes: maxBytes, tracing, isTls } = settings;
  const { adapters, environment, clock, log, servers } = context;
  const requests = new RequestMetrics({
    operations: RESPONSE_STATUSES,
    isApiPath: (path) => PETSTORE_API.has(path),
  });
  const usage = new UsageRecorder({ store: adapters.usageHistory, clock, log });
  const accessLog =
    file === undefined
      ? undefined
      : await (await import("../observe/access-log.ts")).openAccessLog({ file, omit, log });
  /** Undefined if the request log is off. */
  const requestLog = maxBytes === 0 ? undefined : new RequestLog({ maxBytes, now: () => clock.now() });
  const tracer =
    tracing &&
    new (await import("../observe/tracer.ts")).Tracer({
      ...tracing,
      omit,
      environment,
      serverId: servers.self.id,
      isTls,
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

interface MeasuredParts {
  readonly server: HttpServer;
  readonly authenticator: Authenticator;
  readonly observers: Pick<Observers, "requests" | "tracer">;
  readonly responseCacheStatistics: CacheStatistics;
  /** Undefined if no webhook is configured. */
  readonly webhook: WebhookSender | undefined;
  readonly lastBackup: LastBackup;
}

export function startMetrics({ observers, ...parts }: MeasuredParts, context: ServerContext): AppMetrics {
  const { requests, tracer } = observers;
  return new AppMetrics({ ...context, ...parts, version: packageJson.version, requests, tracer });
}
