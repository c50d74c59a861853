import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { outputOf } from "./machine.ts";

export interface Program {
  readonly name: string;
  find(): string | undefined;
  /** The first that the package sources offer is installed. */
  readonly packages: readonly string[];
}

const DEBIAN_POSTGRESQL = "/usr/lib/postgresql";

export const POSTGRESQL: Program = {
  name: "PostgreSQL",
  packages: ["postgresql"],
  find() {
    const onPath = folderOf("initdb");
    if (onPath !== undefined && folderOf("postgres") === onPath) return onPath;
    return versionsIn(DEBIAN_POSTGRESQL).find((folder) => Bun.which("postgres", { PATH: folder }) !== null);
  },
};

export const VALKEY: Program = {
  name: "Valkey or Redis 7",
  packages: ["valkey-server", "redis-server"],
  find: () => folderOf("valkey-server") ?? folderOf("redis-server"),
};

export const NGINX: Program = {
  name: "nginx",
  packages: ["nginx-light", "nginx"],
  find: () => folderOf("nginx"),
};

export const HAPROXY: Program = { name: "HAProxy", packages: ["haproxy"], find: () => folderOf("haproxy") };

export const PROMETHEUS: Program = {
  name: "Prometheus",
  packages: ["prometheus"],
  find: () => (folderOf("promtool") === undefined ? undefined : folderOf("prometheus")),
};

export const IPROUTE: Program = { name: "iproute2", packages: ["iproute2"], find: () => folderOf("ss") };

export const OPENSSL: Program = { name: "OpenSSL", packages: ["openssl"], find: () => folderOf("openssl") };

export const SQLITE_SHELL: Program = {
  name: "The SQLite shell",
  packages: ["sqlite3"],
  find: () => folderOf("sqlite3"),
};

export const CHROMIUM: Program = {
  name: "Chromium",
  packages: ["chromium"],
  find: () => folderOf("chromium"),
};

/** Checks units of systemd. */
export const SYSTEMD: Program = {
  name: "systemd-analyze",
  packages: ["systemd"],
  find: () => folderOf("systemd-analyze"),
};

/** Checks manual pages. */
export const MANDOC: Program = { name: "mandoc", packages: ["mandoc"], find: () => folderOf("mandoc") };

export const ZSH: Program = { name: "zsh", packages: ["zsh"], find: () => folderOf("zsh") };

export const FISH: Program = { name: "fish", packages: ["fish"], find: () => folderOf("fish") };

/** Builds container images without a daemon. */
export const BUILDAH: Program = { name: "buildah", packages: ["buildah"], find: () => folderOf("buildah") };

export const CURL: Program = { name: "curl", packages: ["curl"], find: () => folderOf("curl") };

/** Debian's own Python first: a python3 earlier on the path may lack the package. */
export const PYTHON: Program = {
  name: "Python with requests",
  packages: ["python3-requests"],
  find: () => ["/usr/bin", folderOf("python3")].find((folder) => folder !== undefined && hasRequests(folder)),
};

function hasRequests(folder: string): boolean {
  const python = `${folder}/python3`;
  return existsSync(python) && Bun.spawnSync([python, "-c", "import requests"]).exitCode === 0;
}

const PROGRAMS: readonly Program[] = [
  POSTGRESQL,
  VALKEY,
  NGINX,
  HAPROXY,
  PROMETHEUS,
  IPROUTE,
  OPENSSL,
  SQLITE_SHELL,
  CHROMIUM,
  CURL,
  PYTHON,
  SYSTEMD,
  MANDOC,
  ZSH,
  FISH,
  BUILDAH,
];

function folderOf(program: string): string | undefined {
  const PATH = `${process.env.PATH ?? ""}:/usr/sbin:/usr/local/sbin`;
  return Bun.which(program, { PATH })?.replace(/\/[^/]*$/, "");
}

/** Newest first. */
function versionsIn(folder: string): string[] {
  try {
    const versions = readdirSync(folder).toSorted((a, b) => Number(b) - Number(a));
    return versions.map((version) => `${folder}/${version}/bin`);
  } catch {
    return [];
  }
}

/** The folder of the program's executables. Installs the program if PETSTORE_TEST_INSTALL allows it. */
export function provide(
  program: Program,
  install: (program: Program) => string | undefined = installPackage,
): string {
  const present = program.find();
  if (present !== undefined) return present;
  const problem = install(program);
  const installed = program.find();
  if (installed !== undefined) return installed;
  const packages = program.packages.join(" or ");
  throw new Error(
    `${program.name} is missing: install the package ${packages} (${problem ?? "it has no server"}).`,
  );
}

export function valkeyServer(): string {
  const folder = provide(VALKEY);
  return Bun.which("valkey-server", { PATH: folder }) ?? `${folder}/redis-server`;
}

export function chromiumExecutable(): string {
  return `${provide(CHROMIUM)}/chromium`;
}

/** From "postgres (PostgreSQL) 15.7 (Debian …)" and "Redis server v=7.0.15 sha=…": PostgreSQL 15.7, Redis 7.0.15. */
export function databaseVersions(): string {
  const versions = [`${provide(POSTGRESQL)}/postgres`, valkeyServer()].map((executable) => {
    const text = outputOf([executable, "--version"]);
    const [, name = executable, version = ""] = /(PostgreSQL|Redis|Valkey)\D*(\d[\d.]*)/.exec(text) ?? [];
    return `${name} ${version}`;
  });
  return versions.join(", ");
}

/** Another process may be installing packages at the same time. */
const WAIT_FOR_LOCK = ["-o", "DPkg::Lock::Timeout=120"];

const VARIABLE = "PETSTORE_TEST_INSTALL";

/** Gives the reason if it fails. */
function installPackage({ packages }: Program): string | undefined {
  if (process.env[VARIABLE] !== "1") return `or set ${VARIABLE}=1, and root's tests install it with apt-get`;
  if (Bun.which("apt-get") === null) return `${VARIABLE}=1 is set, but there is no apt-get`;
  if (process.getuid?.() !== 0) return `${VARIABLE}=1 is set, but only root can install it`;
  const restoreDefaults = withoutDefaultCluster();
  try {
    prepareToInstall();
    const offered =
      packages.find((each) => run("apt-cache", "show", each).exitCode === 0) ?? packages[0] ?? "";
    process.stderr.write(`Installing ${offered} …\n`);
    const flags = [...WAIT_FOR_LOCK, "install", "-qy", "--no-install-recommends"];
    const { exitCode, stderr } = run("apt-get", ...flags, offered);
    return exitCode === 0 ? undefined : `apt-get: ${stderr.toString().trim().split("\n").at(-1)}`;
  } finally {
    restoreDefaults();
  }
}

let isPrepared = false;

/** Once: says what may be installed, before anything is, and reads the lists of packages. */
function prepareToInstall(): void {
  if (isPrepared) return;
  isPrepared = true;
  const missing = PROGRAMS.filter((program) => program.find() === undefined);
  const packages = missing.map(({ packages }) => packages.join(" or ")).join(", ");
  process.stderr.write(
    `${VARIABLE}=1: packages to install with apt-get, each when a test needs it: ${packages}\n`,
  );
  run("apt-get", ...WAIT_FOR_LOCK, "update", "-q");
}

function run(...command: string[]) {
  // In run level 1, Debian's packages do not start their servers.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  return Bun.spawnSync(command, { env, stdout: "pipe", stderr: "pipe" });
}

/** Debian's package creates and starts a PostgreSQL server unless this setting is present. */
function withoutDefaultCluster(): () => void {
  const folder = "/etc/postgresql-common/createcluster.d";
  const setting = `${folder}/petstore-tests.conf`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(setting, "create_main_cluster = false\n");
  return () => rmSync(setting);
}
