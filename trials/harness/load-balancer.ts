import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Certificate, freePort, untilListening } from "./server.ts";
import { Child } from "./child.ts";
import { temporaryFolder } from "./cleanup.ts";
import { executable, HAPROXY, NGINX, type Program } from "./programs.ts";

/** A load balancer with the configuration in deploy/; addresses, ports, paths and one limit are replaced. */
export interface LoadBalancerKind {
  readonly program: Program;
  readonly configuration: "nginx/nginx.conf" | "haproxy/haproxy.cfg";
  /** Text in the configuration → what replaces it. */
  readonly replacements: (folder: string) => Readonly<Record<string, string>>;
  /** The documented listener with TLS, and the same listener with another certificate or without. */
  readonly listener: string;
  readonly listenOn: (port: number, certificate: Certificate | undefined, folder: string) => string;
  /** The documented number of requests of one address, and the same with another number. */
  readonly addressLimit: string;
  readonly limitAddressTo: (requests: number) => string;
  readonly flags: (configuration: string) => readonly string[];
}

export interface LoadBalancerOptions {
  /** Without one, it serves plain HTTP. */
  readonly certificate?: Certificate;
  /** Requests of one address. The load of most tests comes from one, so by default it is never reached. */
  readonly addressLimit?: number;
}

const UNLIMITED = 1_000_000;

/** Folders that nginx creates when it starts, by default where only root may write. */
export const NGINX_FOLDERS = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

export const nginx: LoadBalancerKind = {
  program: NGINX,
  configuration: "nginx/nginx.conf",
  replacements: (folder) => ({
    "/run/nginx.pid": `${folder}/nginx.pid`,
    "/var/log/nginx/error.log": "stderr",
    "http {": `http {\n${NGINX_FOLDERS.map((name) => `    ${name}_temp_path ${folder}/${name};`).join("\n")}`,
  }),
  listener: `listen 0.0.0.0:443 ssl;
        ssl_certificate /etc/ssl/petstore.pem;
        ssl_certificate_key /etc/ssl/petstore.key;`,
  listenOn: (port, certificate) =>
    certificate === undefined
      ? `listen 127.0.0.1:${port};`
      : `listen 127.0.0.1:${port} ssl;
        ssl_certificate ${certificate.certFile};
        ssl_certificate_key ${certificate.keyFile};`,
  addressLimit: "rate=500r/s;",
  limitAddressTo: (requests) => `rate=${requests}r/s;`,
  // Until nginx has read its configuration it logs to a file that only root may write to, unless -e is given.
  flags: (configuration) => ["-e", "stderr", "-g", "daemon off;", "-c", configuration],
};

export const haproxy: LoadBalancerKind = {
  program: HAPROXY,
  configuration: "haproxy/haproxy.cfg",
  replacements: (folder) => ({ "/run/haproxy/admin.sock": `${folder}/admin.sock` }),
  listener: "bind 0.0.0.0:443 ssl crt /etc/ssl/petstore.pem alpn h2,http/1.1",
  listenOn: (port, certificate, folder) =>
    certificate === undefined
      ? `bind 127.0.0.1:${port}`
      : `bind 127.0.0.1:${port} ssl crt ${joinedPem(certificate, folder)} alpn h2,http/1.1`,
  addressLimit: "sc0_http_req_rate gt 5000",
  limitAddressTo: (requests) => `sc0_http_req_rate gt ${requests}`,
  flags: (configuration) => ["-db", "-f", configuration],
};

/** HAProxy reads certificate and private key from one file. */
function joinedPem({ certFile, keyFile }: Certificate, folder: string): string {
  const path = join(folder, "petstore.pem");
  writeFileSync(path, readFileSync(certFile, "utf8") + readFileSync(keyFile, "utf8"), { mode: 0o600 });
  return path;
}

export type LoadBalancer = Awaited<ReturnType<typeof startLoadBalancer>>;

/** The file has lines for the first two; the tests add one for the third. */
const SERVERS = ["10.0.0.11:8080", "10.0.0.12:8080", "10.0.0.13:8080"];
const CONFIGURATIONS = join(import.meta.dir, "../../deploy");

export async function startLoadBalancer(
  kind: LoadBalancerKind,
  servers: readonly number[],
  options: LoadBalancerOptions = {},
) {
  const port = freePort();
  const folder = temporaryFolder("load-balancer");
  // nginx that is started by root runs as nobody.
  chmodSync(folder, 0o755);
  const path = join(folder, basename(kind.configuration));
  const text = configurationFor(kind, { ...options, folder, servers, port });
  writeFileSync(path, text);
  const child = new Child([executable(kind.program), ...kind.flags(path)], { quit: "SIGTERM" });
  const isUp = await Promise.race([untilListening(port), child.ended.then(() => false)]);
  if (!isUp) throw new Error(`${kind.program.name} did not start:\n${child.output}`);
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
  kind: LoadBalancerKind,
  options: LoadBalancerOptions & { folder: string; servers: readonly number[]; port: number },
): string {
  const { folder, servers, port, certificate, addressLimit = UNLIMITED } = options;
  let text = readFileSync(join(CONFIGURATIONS, kind.configuration), "utf8");
  const replace = (from: string, to: string) => {
    if (!text.includes(from)) throw new Error(`deploy/${kind.configuration} has no ${from} any more`);
    text = text.replace(from, to);
  };
  const [, second = ""] = text.split("\n").filter((line) => /server .*10\.0\.0\.1[12]:8080/.test(line));
  replace(second, `${second}\n${second.replace("server b", "server c").replace("10.0.0.12", "10.0.0.13")}`);
  for (const [i, documented] of SERVERS.entries()) replace(documented, `127.0.0.1:${servers[i]}`);
  replace(kind.listener, kind.listenOn(port, certificate, folder));
  replace(kind.addressLimit, kind.limitAddressTo(addressLimit));
  for (const [from, to] of Object.entries(kind.replacements(folder))) replace(from, to);
  return text;
}
