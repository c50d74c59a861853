import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Certificate, freePort } from "./server.ts";
import { Child } from "./child.ts";
import { temporaryDirectory } from "./cleanup.ts";
import { HttpConnection } from "./http-connection.ts";
import { executable, HAPROXY, NGINX, type Program } from "./programs.ts";

/** A load balancer with the configuration in deploy/. */
export interface LoadBalancerKind {
  readonly program: Program;
  readonly configuration: "nginx/nginx.conf" | "haproxy/haproxy.cfg";
  /** The texts of the configuration to replace: paths, the listener with TLS, and the limit of requests per address. */
  readonly replacements: (settings: Settings) => Readonly<Record<string, string>>;
  readonly flags: (configuration: string) => readonly string[];
}

export interface LoadBalancerOptions {
  /** The certificate; without one, it serves plain HTTP. */
  readonly certificate?: Certificate;
  /** The limit of requests per address. It is never reached by default, because most tests send from one address. */
  readonly addressLimit?: number;
}

interface Settings extends LoadBalancerOptions {
  readonly directory: string;
  readonly port: number;
}

const UNLIMITED = 1_000_000;

/** The directories that nginx creates when it starts, by default where only root may write. */
const NGINX_DIRECTORIES = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

const nginxListener = (address: string, { certFile, keyFile }: Certificate) => `listen ${address} ssl;
        ssl_certificate ${certFile};
        ssl_certificate_key ${keyFile};`;
const DOCUMENTED = { certFile: "/etc/ssl/petstore.pem", keyFile: "/etc/ssl/petstore.key" };

export const nginx: LoadBalancerKind = {
  program: NGINX,
  configuration: "nginx/nginx.conf",
  replacements: ({ directory, port, certificate, addressLimit = UNLIMITED }) => ({
    "/run/nginx.pid": `${directory}/nginx.pid`,
    "/var/log/nginx/error.log": "stderr",
    "http {": `http {\n${NGINX_DIRECTORIES.map((name) => `    ${name}_temp_path ${directory}/${name};`).join("\n")}`,
    [nginxListener("0.0.0.0:443", DOCUMENTED)]: certificate
      ? nginxListener(`127.0.0.1:${port}`, certificate)
      : `listen 127.0.0.1:${port};`,
    "rate=500r/s;": `rate=${addressLimit}r/s;`,
  }),
  // Until nginx has read its configuration, it logs to a file that only root may write, unless -e is given.
  flags: (configuration) => ["-e", "stderr", "-g", "daemon off;", "-c", configuration],
};

const haproxyListener = (address: string, pem: string) => `bind ${address} ssl crt ${pem} alpn h2,http/1.1`;

export const haproxy: LoadBalancerKind = {
  program: HAPROXY,
  configuration: "haproxy/haproxy.cfg",
  replacements: ({ directory, port, certificate, addressLimit = UNLIMITED }) => ({
    "/run/haproxy/admin.sock": `${directory}/admin.sock`,
    [haproxyListener("0.0.0.0:443", DOCUMENTED.certFile)]: certificate
      ? haproxyListener(`127.0.0.1:${port}`, joinedPem(certificate, directory))
      : `bind 127.0.0.1:${port}`,
    "sc0_http_req_rate gt 5000": `sc0_http_req_rate gt ${addressLimit}`,
  }),
  flags: (configuration) => ["-db", "-f", configuration],
};

/** Joins certificate and private key, because HAProxy reads them from one file. */
function joinedPem({ certFile, keyFile }: Certificate, directory: string): string {
  const path = join(directory, "petstore.pem");
  writeFileSync(path, readFileSync(certFile, "utf8") + readFileSync(keyFile, "utf8"), { mode: 0o600 });
  return path;
}

export type LoadBalancer = Awaited<ReturnType<typeof startLoadBalancer>>;

/** The addresses of servers. The configuration has lines for the first two; the tests add one for the third. */
const SERVERS = ["10.0.0.11:8080", "10.0.0.12:8080", "10.0.0.13:8080"];
const CONFIGURATIONS = join(import.meta.dir, "../../deploy");

export async function startLoadBalancer(
  kind: LoadBalancerKind,
  servers: readonly number[],
  options: LoadBalancerOptions = {},
) {
  const port = freePort();
  const directory = temporaryDirectory("load-balancer");
  // nginx runs as nobody if root starts it.
  chmodSync(directory, 0o755);
  const path = join(directory, basename(kind.configuration));
  const text = configurationFor(kind, servers, { ...options, directory, port });
  writeFileSync(path, text);
  const child = new Child([executable(kind.program), ...kind.flags(path)], { quit: "SIGTERM" });
  const open = () => HttpConnection.open(port).catch(() => Bun.sleep(5));
  let connection = await open();
  while (connection === undefined && !child.hasExited) connection = await open();
  if (!connection) throw new Error(`${kind.program.name} ended with ${await child.ended}:\n${child.output}`);
  connection.close();
  return {
    port,
    pid: child.pid,
    directory,
    /** Resolves when a matching line is logged from now on. */
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

function configurationFor(kind: LoadBalancerKind, servers: readonly number[], settings: Settings): string {
  let text = readFileSync(join(CONFIGURATIONS, kind.configuration), "utf8");
  const replace = (from: string, to: string) => {
    if (!text.includes(from)) throw new Error(`deploy/${kind.configuration} has no ${from} any more`);
    text = text.replace(from, to);
  };
  const [, second = ""] = text.split("\n").filter((line) => /server .*10\.0\.0\.1[12]:8080/.test(line));
  replace(second, `${second}\n${second.replace("server b", "server c").replace("10.0.0.12", "10.0.0.13")}`);
  for (const [i, documented] of SERVERS.entries()) replace(documented, `127.0.0.1:${servers[i]}`);
  for (const [from, to] of Object.entries(kind.replacements(settings))) replace(from, to);
  return text;
}
