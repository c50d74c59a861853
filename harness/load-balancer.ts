import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "./child.ts";
import { temporaryFolder } from "./cleanup.ts";
import { NoResponse, sendOnce } from "./http-connection.ts";
import { freePort } from "./ports.ts";
import { HAPROXY, NGINX, type Program, provide } from "./programs.ts";

/** A load balancer with its documented configuration; only addresses, ports and paths are replaced. */
export interface LoadBalancerKind {
  readonly program: Program;
  readonly executable: "nginx" | "haproxy";
  readonly configuration: "nginx.conf" | "haproxy.cfg";
  /** Text in the configuration → what replaces it. */
  readonly replacements: (folder: string) => Readonly<Record<string, string>>;
  readonly flags: (configuration: string) => readonly string[];
}

/** Folders that nginx creates when it starts, by default where only root may write. */
export const NGINX_FOLDERS = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

export const nginx: LoadBalancerKind = {
  program: NGINX,
  executable: "nginx",
  configuration: "nginx.conf",
  replacements: (folder) => ({
    "/run/nginx.pid": `${folder}/nginx.pid`,
    "/var/log/nginx/error.log": "stderr",
    "http {": `http {\n${NGINX_FOLDERS.map((name) => `    ${name}_temp_path ${folder}/${name};`).join("\n")}`,
  }),
  // Until nginx has read its configuration it logs to a file that only root may write to, unless -e is given.
  flags: (configuration) => ["-e", "stderr", "-g", "daemon off;", "-c", configuration],
};

export const haproxy: LoadBalancerKind = {
  program: HAPROXY,
  executable: "haproxy",
  configuration: "haproxy.cfg",
  replacements: (folder) => ({ "/run/haproxy/admin.sock": `${folder}/admin.sock` }),
  flags: (configuration) => ["-db", "-f", configuration],
};

export type LoadBalancer = Awaited<ReturnType<typeof startLoadBalancer>>;

const DOCUMENTED_SERVERS = ["10.0.0.11:8080", "10.0.0.12:8080", "10.0.0.13:8080"];
const CONFIGURATIONS = join(import.meta.dir, "../docs/balancers");

export async function startLoadBalancer(kind: LoadBalancerKind, servers: readonly number[]) {
  const port = freePort();
  const folder = temporaryFolder("load-balancer");
  // nginx that is started by root runs as nobody.
  chmodSync(folder, 0o755);
  const path = join(folder, kind.configuration);
  const text = configurationFor(kind, { folder, servers, port });
  writeFileSync(path, text);
  const executable = join(provide(kind.program), kind.executable);
  const child = new Child([executable, ...kind.flags(path)], { quit: "SIGTERM" });
  const isUp = await Promise.race([untilResponding(port), child.ended.then(() => false)]);
  if (!isUp) throw new Error(`${kind.executable} did not start:\n${child.output}`);
  return {
    port,
    pid: child.pid,
    folder,
    /** Resolves when it logs, from now on, a line that matches. */
    logged: (pattern: RegExp) => child.line(pattern),
    reload(change: (configuration: string) => string) {
      writeFileSync(path, change(text));
      child.kill("SIGHUP");
    },
    async stop() {
      await child.stop();
    },
  };
}

function configurationFor(
  { configuration, replacements }: LoadBalancerKind,
  { folder, servers, port }: { folder: string; servers: readonly number[]; port: number },
): string {
  let text = readFileSync(join(CONFIGURATIONS, configuration), "utf8");
  const replace = (from: string, to: string) => {
    if (!text.includes(from)) throw new Error(`docs/balancers/${configuration} has no ${from} any more`);
    text = text.replace(from, to);
  };
  for (const [i, documented] of DOCUMENTED_SERVERS.entries()) replace(documented, `127.0.0.1:${servers[i]}`);
  replace("0.0.0.0:80", `127.0.0.1:${port}`);
  for (const [from, to] of Object.entries(replacements(folder))) replace(from, to);
  return text;
}

async function untilResponding(port: number): Promise<true> {
  for (;;) {
    try {
      await sendOnce(port, { path: "/healthz" });
      return true;
    } catch (error) {
      if (!(error instanceof NoResponse)) throw error;
      await Bun.sleep(5);
    }
  }
}
