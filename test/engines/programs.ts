import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";

/** What the tests need from the machine, and where Debian keeps it. */
export interface Wanted {
  readonly name: string;
  /** Folder of the programs, or undefined. */
  find(): string | undefined;
  /** Any one of them will do; the first that the machine's sources offer is installed. */
  readonly packages: readonly string[];
}

const DEBIAN_POSTGRESQL = "/usr/lib/postgresql";

export const POSTGRESQL: Wanted = {
  name: "PostgreSQL",
  packages: ["postgresql"],
  find() {
    const onPath = folderOf("initdb");
    if (onPath !== undefined && folderOf("postgres") === onPath) return onPath;
    return versionsIn(DEBIAN_POSTGRESQL).find((folder) => Bun.which("postgres", { PATH: folder }) !== null);
  },
};

export const VALKEY: Wanted = {
  name: "Valkey or Redis 7",
  packages: ["valkey-server", "redis-server"],
  find: () => folderOf("valkey-server") ?? folderOf("redis-server"),
};

function folderOf(program: string): string | undefined {
  return Bun.which(program)?.replace(/\/[^/]*$/, "");
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

/** Finds the programs or installs them. Where neither can be done, one line says what to do about it. */
export function provide(
  wanted: Wanted,
  install: (wanted: Wanted) => string | undefined = installPackage,
): string {
  const there = wanted.find();
  if (there !== undefined) return there;
  const problem = install(wanted);
  const installed = wanted.find();
  if (installed !== undefined) return installed;
  const packages = wanted.packages.join(" or ");
  throw new Error(
    `The tests need ${wanted.name}: install the package ${packages} (${problem ?? "it has no server"}).`,
  );
}

/** Something else may be installing at the same time, as a machine that has just started does. */
const WAIT_FOR_LOCK = ["-o", "DPkg::Lock::Timeout=120"];

/** Gives the reason when it cannot. */
function installPackage({ name, packages }: Wanted): string | undefined {
  if (Bun.which("apt-get") === null) return "there is no apt-get to do it";
  if (process.getuid?.() !== 0) return "only root can";
  console.error(`Installing ${name} for the tests …`);
  const keepClusterAway = withoutSystemCluster();
  try {
    run("apt-get", ...WAIT_FOR_LOCK, "update", "-q");
    const offered =
      packages.find((each) => run("apt-cache", "show", each).exitCode === 0) ?? packages[0] ?? "";
    const { exitCode, stderr } = run(
      "apt-get",
      ...WAIT_FOR_LOCK,
      "install",
      "-qy",
      "--no-install-recommends",
      offered,
    );
    return exitCode === 0 ? undefined : `apt-get: ${stderr.toString().trim().split("\n").at(-1)}`;
  } finally {
    keepClusterAway();
  }
}

function run(...command: string[]) {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  return Bun.spawnSync(command, { env, stdout: "pipe", stderr: "pipe" });
}

/** Debian makes and starts a cluster with the package. This setting keeps it from doing so, and is taken back. */
function withoutSystemCluster(): () => void {
  const folder = "/etc/postgresql-common/createcluster.d";
  const setting = `${folder}/petstore-tests.conf`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(setting, "create_main_cluster = false\n");
  return () => rmSync(setting);
}
