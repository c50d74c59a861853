import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../../../trials/harness/child.ts";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { onFreePort, type Server, startServer } from "../../../trials/harness/server.ts";
import { executable, PROMETHEUS, PROMTOOL } from "../../../trials/harness/programs.ts";

const DEPLOY = join(import.meta.dir, "../../../deploy/prometheus");

export interface PrometheusOptions {
  /** `host:port`. */
  readonly target: string;
  /** The admin token. */
  readonly token: string;
}

export interface Prometheus extends Server {
  /** The series that a query has now, or had at a Unix time. */
  query(expression: string, at?: number): Promise<readonly Series[]>;
}

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** With the configuration and the alerts in deploy/, except for the target, the token and a shorter interval. */
export async function startPrometheus({ target, token }: PrometheusOptions): Promise<Prometheus> {
  const folder = temporaryFolder("prometheus");
  writeFileSync(join(folder, "token"), token, { mode: 0o600 });
  copyFileSync(join(DEPLOY, "alerts.yml"), join(folder, "alerts.yml"));
  const config = readFileSync(join(DEPLOY, "prometheus.yml"), "utf8")
    .replace("127.0.0.1:8090", target)
    .replace("/etc/prometheus/petstore-admin-token", join(folder, "token"))
    .replaceAll("15s", "1s");
  writeFileSync(join(folder, "prometheus.yml"), config);
  const server = await onFreePort((port) =>
    startServer({
      url: `http://127.0.0.1:${port}`,
      command: [
        executable(PROMETHEUS),
        `--config.file=${join(folder, "prometheus.yml")}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      cwd: folder,
      ready: /Server is ready to receive web requests/,
      stop: "SIGTERM",
    }),
  );
  return Object.assign(server, {
    query: async (expression: string, at = Date.now() / 1000) => {
      const parameters = new URLSearchParams({ query: expression, time: String(at) });
      const response = await fetch(`${server.url}/api/v1/query?${parameters}`);
      return seriesOf(await response.json());
    },
  });
}

interface QueryResponse {
  readonly status: string;
  readonly error?: string;
  readonly data?: {
    readonly result: readonly { metric: Record<string, string>; value: [time: number, value: string] }[];
  };
}

function seriesOf(response: unknown): Series[] {
  const { status, error, data } = response as QueryResponse;
  if (status !== "success" || data === undefined) throw new Error(`the query failed: ${error}`);
  return data.result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }));
}

/** Runs promtool. Gives its exit code and all that it wrote. */
export async function promtool(args: readonly string[], input = "") {
  const { code, out, err } = await runProgram([executable(PROMTOOL), ...args], { input });
  return { code, output: out + err };
}
