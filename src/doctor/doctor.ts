import { X509Certificate } from "node:crypto";
import { constants, readdirSync, statSync } from "node:fs";
import { createServer, isIP } from "node:net";
import { dirname, join, resolve } from "node:path";
import { type Config, originOf, plainTextConnections } from "../config/config.ts";
import { ADMIN_LISTEN_FLAGS, LISTEN_FLAGS, listenProblems } from "../config/network.ts";
import type { Variables } from "../config/parse-options.ts";
import { readTlsFiles } from "../config/tls.ts";
import { type DataDirectory, existingParent, notWritable } from "../data-directory.ts";
import { OTHER_USERS, statOf } from "../runtime/own-files.ts";
import { HEALTH_PATH } from "../domain/constants.ts";
import type { Clock } from "../domain/ports.ts";
import { DAY_MS } from "../domain/rate-limit.ts";
import { PLAIN_TEXT_WARNINGS } from "../observe/log-events.ts";
import { checkClock, checkOpenFiles, checkQuotaStore, checkSqlite, isAccessible } from "./databases.ts";
import { check, type Finding, problemsOr, reasonOf } from "./finding.ts";
import { checkDestinations } from "./outgoing.ts";
import { checkSettingsFiles, type FileSetting } from "./settings-files.ts";

interface DoctorOptions {
  readonly config: Config;
  /** Returns the path that a setting names. */
  readonly pathOf: (setting: FileSetting) => string | undefined;
  readonly variables: Variables;
  readonly clock: Clock;
  /** Returns the status of the response to a GET. Rejects if no response arrives. */
  readonly statusOf: (url: string) => Promise<number | undefined>;
}

/** Checks everything that a server with this configuration needs. It changes nothing, and servers may be running. */
export async function diagnose(options: DoctorOptions): Promise<Finding[]> {
  const { config, pathOf, variables, clock, statusOf } = options;
  const now = () => clock.now();
  const sqlite = config.databaseUrl === undefined ? checkSqlite(config.directory, now()) : { findings: [] };
  const { findings, clocks: comparisons = [] } = await checkDestinations(config, now);
  return [
    ...checkConfiguration(config, variables),
    ...checkDataDirectory(config.directory),
    ...(await checkPorts(config, statusOf)),
    ...sqlite.findings,
    ...checkQuotaStore(config),
    ...findings,
    ...checkClock({ now: now(), newestTime: sqlite.newestTime, comparisons }),
    checkOpenFiles(config),
    ...checkAccessLog(config),
    ...checkTls(config, now()),
    ...checkSettingsFiles(pathOf),
  ];
}

const configuration = check("configuration");

/** Hosts that are reserved for documentation (RFC 2606). */
const PLACEHOLDER_HOST = /(?:^|\.)example(?:\.(?:com|net|org))?$/;

/** Checks combinations of settings that are valid individually. */
function checkConfiguration(config: Config, variables: Variables): Finding[] {
  const { publicUrl, host } = config;
  return problemsOr(configuration.ok(`${config.environment}: the settings go together`), [
    ...plainTextConnections(config, variables).map((each) =>
      configuration.warning(...PLAIN_TEXT_WARNINGS[each]),
    ),
    publicUrl !== undefined &&
      PLACEHOLDER_HOST.test(new URL(publicUrl).hostname) &&
      configuration.warning(
        `--public-url is ${publicUrl}, an address of examples; responses and printed commands lead clients and their keys there`,
        "set it to the URL that clients use",
      ),
    publicUrl === undefined &&
      (host === "0.0.0.0" || host === "::") &&
      configuration.warning(
        "links in responses and in the OpenAPI document name the address that the server listens on",
        "set --public-url to the URL that clients use",
      ),
  ]);
}

const data = check("data directory");
const space = check("disk space");

const LOW_BYTES = 1e9;
const TOO_LOW_BYTES = 1e8;

function checkDataDirectory(directory: DataDirectory): Finding[] {
  const { path } = directory;
  const stats = statSync(path, { throwIfNoEntry: false });
  const accessMode = constants.R_OK | constants.W_OK | constants.X_OK;
  if (stats === undefined) {
    const parent = existingParent(path);
    return [
      isAccessible(parent, accessMode)
        ? data.ok(`${path} does not exist yet; the server creates it`)
        : data.error(...notWritable(parent)),
      freeSpace(directory),
    ];
  }
  if (!stats.isDirectory())
    return [data.error(`${path} is not a directory`, "choose another --data, or move that file away")];
  if (!isAccessible(path, accessMode)) return [data.error(...notWritable(path))];
  const files = readdirSync(path).flatMap((name) => {
    const file = join(path, name);
    const stat = statOf(file);
    return stat && !stat.isSymbolicLink() ? { file, mode: stat.mode, uid: stat.uid } : [];
  });
  const open = files.filter(({ mode }) => (mode & OTHER_USERS) !== 0).map(({ file }) => file);
  // Root may have copied such files into the directory.
  const foreign = files.filter(({ uid }) => uid !== stats.uid).map(({ file }) => file);
  return [
    ...problemsOr(data.ok(`${path} is writable, and only its owner has access`), [
      (stats.mode & OTHER_USERS) !== 0
        ? data.warning(`other users have access to ${path}`, `chmod 700 ${path}`)
        : open.length > 0 &&
          data.warning(`other users have access to ${open.join(", ")}`, `chmod go= ${open.join(" ")}`),
    ]),
    ...(foreign.length === 0
      ? []
      : [
          data.warning(
            `${foreign.join(", ")} ${foreign.length === 1 ? "belongs" : "belong"} to another user than the directory`,
            `give them to the user of the server: chown --reference=${path} ${foreign.join(" ")}`,
          ),
        ]),
    freeSpace(directory),
  ];
}

function freeSpace(directory: DataDirectory): Finding {
  const bytes = directory.freeBytes();
  const free = `${(bytes / 1e9).toFixed(1)} GB are free on the disk of ${existingParent(directory.path)}`;
  const remedy = "free space or enlarge the disk: without space, every write gets 503";
  if (bytes < TOO_LOW_BYTES) return space.error(free, remedy);
  return bytes < LOW_BYTES ? space.warning(free, remedy) : space.ok(free);
}

const ports = check("ports");

/**
 * Checks the ports. A port on which a Petstore server already listens is fine. The default port for operators is
 * skipped, because a server can use another one.
 */
async function checkPorts(
  { host, port, admin, tls: files }: Config,
  statusOf: DoctorOptions["statusOf"],
): Promise<Finding[]> {
  const listeners = [
    { host, port, path: HEALTH_PATH, flags: LISTEN_FLAGS },
    ...(admin && !admin.isDefault ? [{ ...admin, path: "/livez", flags: ADMIN_LISTEN_FLAGS }] : []),
  ];
  const checks = listeners.map(async ({ flags, path, ...listener }): Promise<Finding> => {
    const name = `${listener.host} port ${listener.port}`;
    const code = await listenError(listener);
    if (code === undefined) return ports.ok(`the server can listen on ${name}`);
    const url = originOf({ ...listener, isTls: files !== undefined }) + path;
    const status = code === "EADDRINUSE" ? await statusOf(url).catch(() => undefined) : undefined;
    if (status === 200 || status === 503) return ports.ok(`a server listens on ${name} already`);
    const either = [...new Set([flags.host, flags.port])].join(" and ");
    const [problem, remedy] = listenProblems(flags)[code] ?? [code, `see ${either}`];
    return ports.error(`the server cannot listen on ${name}: ${problem}`, remedy);
  });
  return Promise.all(checks);
}

/** The code of the error when listening fails. For an unknown host name, the runtime reports none. */
function listenError({ host, port }: { readonly host: string; readonly port: number }) {
  const probe = createServer();
  return new Promise<string | undefined>((resolve) => {
    probe.once("error", (error) => resolve(String(Reflect.get(error, "code") ?? "ENOTFOUND")));
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(undefined)));
  });
}

const accessLog = check("access log");

/** Checks the access log. The server creates the file, but not its directory. */
function checkAccessLog({ accessLog: path }: Config): Finding[] {
  if (path === undefined || path === "-") return [];
  const stats = statSync(path, { throwIfNoEntry: false });
  const parent = dirname(resolve(path));
  if (stats === undefined && !statSync(parent, { throwIfNoEntry: false })?.isDirectory())
    return [accessLog.error(`the directory ${parent} does not exist`, `create it: mkdir -p ${parent}`)];
  if (stats?.isDirectory())
    return [accessLog.error(`${path} is a directory`, "choose another --access-log, such as a file in it")];
  const place = stats === undefined ? parent : path;
  const needed = stats === undefined ? constants.W_OK | constants.X_OK : constants.W_OK;
  if (!isAccessible(place, needed)) {
    const [problem] = notWritable(place);
    return [accessLog.error(problem, `run the command as the user of the server, or: chown USER ${place}`)];
  }
  return problemsOr(accessLog.ok(`lines can be appended to ${path}`), [
    stats?.isFile() === true &&
      (stats.mode & OTHER_USERS) !== 0 &&
      accessLog.warning(`other users have access to ${path}`, `chmod 600 ${path}`),
  ]);
}

const tls = check("TLS");
/** How long before its end a certificate should be renewed. Programs that renew certificates do it weeks before. */
const RENEWAL_DAYS = 14;

function checkTls({ tls: files, publicUrl }: Config, now: number): Finding[] {
  if (files === undefined) return [tls.ok("the server serves plain HTTP: --tls-cert is not set")];
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(readTlsFiles(files).cert);
  } catch (error) {
    const remedy = "correct the files; a running server keeps the last ones that worked";
    return [tls.error(reasonOf(error), remedy)];
  }
  return problemsOr(tls.ok(`${files.certFile} is valid until ${certificate.validTo}`), [
    validity(certificate, now),
    publicUrl !== undefined && hostProblem(certificate, publicUrl),
  ]);
}

function validity({ validFrom, validTo }: X509Certificate, now: number): Finding | undefined {
  const renew = "renew the certificate; a running server takes the new files within seconds";
  if (now < Date.parse(validFrom))
    return tls.error(`the certificate is valid from ${validFrom} on`, "check the clock, or wait until then");
  const daysLeft = Math.floor((Date.parse(validTo) - now) / DAY_MS);
  if (daysLeft < 0) return tls.error(`the certificate expired on ${validTo}`, renew);
  return daysLeft < RENEWAL_DAYS ? tls.warning(`the certificate expires on ${validTo}`, renew) : undefined;
}

function hostProblem(certificate: X509Certificate, publicUrl: string): Finding | undefined {
  const host = new URL(publicUrl).hostname.replace(/^\[(.*)\]$/, "$1");
  const name = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  if (name !== undefined) return undefined;
  return tls.warning(
    `the certificate is not for ${host}, the host of --public-url`,
    "use a certificate that names it, unless a proxy in front has one",
  );
}
