import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputOf } from "./machine.ts";

/** A program that is not part of `npm ci`. */
export interface Program {
  readonly name: string;
  /** The possible paths. The first that exists and is good enough is used. */
  readonly executables: readonly string[];
  /** The Debian packages. The first that the package sources offer is installed. */
  readonly packages: readonly string[];
  readonly isGoodEnough?: (path: string) => boolean;
}

export const INITDB = program("initdb", "postgresql");
export const POSTGRES = program("postgres", "postgresql");
export const PG_BASEBACKUP = program("pg_basebackup", "postgresql-client");
export const PSQL = program("psql", "postgresql-client");
export const PG_DUMP = program("pg_dump", "postgresql-client");
export const NGINX: Program = { name: "nginx", executables: ["nginx"], packages: ["nginx-light", "nginx"] };
export const HAPROXY = program("haproxy");
export const ETCD = program("etcd", "etcd-server");
export const PATRONI = program("patroni");
export const PROMETHEUS = program("prometheus");
export const PROMTOOL = program("promtool", "prometheus");
export const OPENSSL = program("openssl");
/** The package of a library that simulates another clock for a process. */
export const FAKETIME = program("faketime");
export const STRACE = program("strace");
export const SQLITE_SHELL = program("sqlite3");
/** The shell without a window takes a fifth less of the processor than the browser, whose engine it has. */
export const CHROMIUM: Program = {
  name: "Chromium",
  executables: ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"],
  packages: ["chromium-headless-shell", "chromium"],
};
export const SYSTEMD_ANALYZE = program("systemd-analyze", "systemd");
export const BASH = program("bash");
export const ZSH = program("zsh");
export const FISH = program("fish");
export const BUILDAH = program("buildah");
export const CURL = program("curl");
export const DPKG_DEB = program("dpkg-deb", "dpkg");
export const RPMBUILD = program("rpmbuild", "rpm");
/** Debian's own Python comes first, because a python3 earlier on the path may lack the package. */
export const PYTHON: Program = {
  name: "Python with requests",
  executables: ["/usr/bin/python3", "python3"],
  packages: ["python3-requests"],
  isGoodEnough: (path) => Bun.spawnSync([path, "-c", "import requests"]).exitCode === 0,
};

function program(executable: string, debianPackage = executable): Program {
  return { name: executable, executables: [executable], packages: [debianPackage] };
}

const DEBIAN_POSTGRES = "/usr/lib/postgresql";

/** The directories of PostgreSQL. Debian has one for each version; the newest is used. */
function postgresDirectories(): string[] {
  if (!existsSync(DEBIAN_POSTGRES)) return [];
  const versions = readdirSync(DEBIAN_POSTGRES).toSorted((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(DEBIAN_POSTGRES, version, "bin"));
}

/** The directories for administrators, which are not on everybody's path. */
const MORE_DIRECTORIES = ["/usr/sbin", "/usr/local/sbin"];

/** Finds a program. Each is searched for separately: one may be on the path, and another of the same package not. */
export function find({ executables, isGoodEnough = () => true }: Program): string | undefined {
  const directories = [...postgresDirectories(), ...(process.env.PATH ?? "").split(":"), ...MORE_DIRECTORIES];
  const paths = executables.flatMap((name) =>
    name.startsWith("/") ? name : directories.map((directory) => join(directory, name)),
  );
  return paths.find((path) => Bun.which(path) !== null && isGoodEnough(path));
}

const found = new Map<Program, string>();

/** The path of a program. */
export function executable(wanted: Program): string {
  const path = found.get(wanted) ?? find(wanted);
  if (path === undefined) throw new Error(missingLine(wanted));
  found.set(wanted, path);
  return path;
}

const missingLine = ({ name, packages }: Program) =>
  `${name} is missing: install the package ${packages.join(" or ")}.`;

/** The version, such as PostgreSQL 15.7. */
export function databaseVersion(): string {
  const text = outputOf([executable(POSTGRES), "--version"]);
  return `PostgreSQL ${/PostgreSQL\D*(\d[\d.]*)/.exec(text)?.[1] ?? ""}`;
}

const VARIABLE = "PETSTORE_TEST_INSTALL";

/** Installs missing programs if PETSTORE_TEST_INSTALL=1 is set. Returns a line for each that is still missing. */
export function provide(programs: readonly Program[]): string[] {
  const missing = programs.filter((each) => find(each) === undefined);
  if (missing.length === 0) return [];
  const problem = installPackages(missing);
  const stillMissing = programs.filter((each) => find(each) === undefined);
  return stillMissing.length === 0 ? [] : [...stillMissing.map(missingLine), problem];
}

/** Waits for another process that may be installing packages at the same time. */
const WAIT_FOR_LOCK = ["-o", "DPkg::Lock::Timeout=120"];

/** Installs packages. Returns the reason why some could not be installed. */
function installPackages(missing: readonly Program[]): string {
  if (process.env[VARIABLE] !== "1") return `As root on Debian, ${VARIABLE}=1 installs what is missing.`;
  if (Bun.which("apt-get") === null) return `${VARIABLE}=1 is set, but there is no apt-get.`;
  if (process.getuid?.() !== 0) return `${VARIABLE}=1 is set, but only root can install packages.`;
  const restoreDefaults = withoutDefaultCluster();
  try {
    run("apt-get", ...WAIT_FOR_LOCK, "update", "-q");
    const offered = missing.map(
      ({ packages }) =>
        packages.find((each) => run("apt-cache", "show", each).exitCode === 0) ?? packages[0] ?? "",
    );
    const names = [...new Set(offered)];
    process.stderr.write(`${VARIABLE}=1: installing ${names.join(", ")} …\n`);
    const flags = [...WAIT_FOR_LOCK, "install", "-qy", "--no-install-recommends"];
    const errors = run("apt-get", ...flags, ...names).stderr.toString();
    return `apt-get: ${errors.trim().split("\n").at(-1)}`;
  } finally {
    restoreDefaults();
  }
}

function run(...command: string[]) {
  // In run level 1, Debian's packages do not start their servers.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  return Bun.spawnSync(command, { env, stdout: "pipe", stderr: "pipe" });
}

/** Debian's package creates and starts a PostgreSQL server unless this setting is present. */
function withoutDefaultCluster(): () => void {
  const directory = "/etc/postgresql-common/createcluster.d";
  const setting = join(directory, "petstore-tests.conf");
  mkdirSync(directory, { recursive: true });
  writeFileSync(setting, "create_main_cluster = false\n");
  return () => rmSync(setting);
}
