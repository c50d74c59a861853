import { CacheStatistics } from "../../bounded-cache.ts";
import type { Clock } from "../../domain/ports.ts";
import { EventLoopDelay } from "./event-loop-delay.ts";
import { CONTENT_TYPES, formatFor, formatMetrics } from "./exposition.ts";
import { LiveSeries } from "./live-series.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { collectSamples, type MetricSources } from "./samples.ts";

export interface MetricsOptions extends Pick<
  MetricSources,
  "version" | "environment" | "server" | "authenticator" | "adapters"
> {
  readonly clock: Pick<Clock, "now">;
}

export interface Exposition {
  readonly contentType: string;
  readonly body: string;
}

/** The metrics of a server. */
export interface AppMetrics {
  readonly requests: RequestMetrics;
  readonly responseCache: CacheStatistics;
  readonly live: LiveSeries;
  /** The response to a scrape with this `Accept` header. */
  expose(accept: string | null): Exposition;
  stop(): void;
}

/** Counts from now on. */
export function startMetrics({ clock, ...options }: MetricsOptions): AppMetrics {
  const requests = new RequestMetrics();
  const responseCache = new CacheStatistics();
  const eventLoopDelay = new EventLoopDelay();
  const live = new LiveSeries({
    requests,
    connections: () => options.server.statistics.connections,
    now: () => clock.now(),
  });
  const sources = { ...options, requests, responseCache, eventLoopDelay };
  eventLoopDelay.start();
  live.start();
  return {
    requests,
    responseCache,
    live,
    expose(accept) {
      const format = formatFor(accept);
      return { contentType: CONTENT_TYPES[format], body: formatMetrics(collectSamples(sources), format) };
    },
    stop() {
      eventLoopDelay.stop();
      live.stop();
    },
  };
}
