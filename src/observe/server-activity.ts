import type { ServerActivity } from "../domain/servers.ts";
import type { HttpServer } from "../http1/index.ts";
import type { AppMetrics } from "./metrics.ts";

/** What a server reports of its requests and connections to the other servers and to operators. */
export function activityOf(
  server: Pick<HttpServer, "port" | "statistics">,
  { requests, live, clockAheadMs }: Pick<AppMetrics, "requests" | "live" | "clockAheadMs">,
): Omit<ServerActivity, "adminUrl"> {
  const { limited, banned, serverError, ...others } = requests.totals();
  const rejections = limited + banned;
  const { latencies, requestsPerSecond } = live.recent();
  return {
    port: server.port,
    clockAheadMs,
    connections: server.statistics.connections,
    requestsPerSecond,
    requests: others.success + others.clientError + rejections + serverError,
    rejections,
    serverErrors: serverError,
    latencies: [...latencies.entries()].filter(([, count]) => count > 0),
  };
}
