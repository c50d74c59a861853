import { Glob } from "bun";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { BROWSER_VARIABLE, startChromium } from "../trials/harness/chromium.ts";
import { runCommand, UsageError } from "../trials/harness/command-line.ts";
import { EXECUTABLE_VARIABLE } from "../trials/harness/petstore.ts";
import { POSTGRES_VARIABLE, startPostgres } from "../trials/harness/postgres.ts";
import * as P from "../trials/harness/programs.ts";
import { builtExecutable } from "./built-executable.ts";

/**
 * Runs `npm test` and `npm run test:all`. Tests that need programs are in the directory of their group; all others need
 * only what `npm ci` installs.
 */
const DATABASES = [P.INITDB, P.POSTGRES];
const SHELLS = [P.BASH, P.ZSH, P.FISH];
const BALANCERS = [P.NGINX, P.HAPROXY];
const CHECKERS = [P.PROMTOOL, P.SYSTEMD_ANALYZE, P.BUILDAH, P.DPKG_DEB, P.RPMBUILD];
const GROUPS: Readonly<Record<string, readonly P.Program[]>> = {
  engines: [...DATABASES, P.PG_BASEBACKUP, P.OPENSSL, P.BASH, P.PG_DUMP],
  browser: [P.CHROMIUM],
  system: [
    ...DATABASES,
    ...SHELLS,
    ...BALANCERS,
    ...CHECKERS,
    P.PROMETHEUS,
    P.STRACE,
    P.OPENSSL,
    P.CURL,
    P.PYTHON,
  ],
};

const ROOT = join(import.meta.dir, "..");
/** The number of workers. Tests wait for timers, disks and other processes half of the time. */
const WORKERS = 2 * availableParallelism();
const TEST_TIMEOUT_MS = 60_000;
/** How long each file takes. The slowest start first, so that all workers end at about the same time. */
const TIMINGS = join(ROOT, "test/timings.json");
/** The test files of a worker share their modules: to load them anew for each file takes a third of all CPU time. */
const WORKER_FLAGS = [`--parallel=${WORKERS}`, "--no-isolate", `--timings=${TIMINGS}`];

const groupOf = (file: string) => Object.keys(GROUPS).find((group) => file.startsWith(`test/${group}/`));

/**
 * Chooses the test files. The arguments are groups, paths, and flags of `bun test`; without a group or path, all files
 * are chosen.
 */
function choose(args: readonly string[]) {
  const [isAll, rest] = args[0] === "--all" ? [true, args.slice(1)] : [false, args];
  const isPath = (arg: string) => arg in GROUPS || /^(?:\.\/)?test\//.test(arg);
  const paths = rest.filter(isPath).map((arg) => (arg in GROUPS ? `test/${arg}/` : arg.replace(/^\.\//, "")));
  const isChosen = (file: string) =>
    paths.length > 0 ? paths.some((path) => file.startsWith(path)) : isAll || groupOf(file) === undefined;
  const files = [...new Glob("test/**/*.test.ts").scanSync(ROOT)].filter(isChosen).toSorted();
  if (files.length === 0) throw new UsageError(`no test file is at ${paths.join(" or ")}`);
  return { files, flags: rest.filter((arg) => !isPath(arg)), leavesOut: paths.length === 0 && !isAll };
}

/**
 * Starts one server of each kind and one browser, and builds one executable, for all test files. They end with this
 * process. `npm test`, which needs none of these, runs the source.
 */
async function startFor(programs: ReadonlySet<P.Program>): Promise<Record<string, string | undefined>> {
  const [postgres, browser, built] = await Promise.all([
    programs.has(P.POSTGRES) ? startPostgres() : undefined,
    programs.has(P.CHROMIUM) ? startChromium() : undefined,
    programs.size > 0 ? builtExecutable() : undefined,
  ]);
  return {
    [POSTGRES_VARIABLE]: postgres?.url,
    [BROWSER_VARIABLE]: browser,
    [EXECUTABLE_VARIABLE]: built,
  };
}

await runCommand({
  name: "test",
  async main(_flags, args) {
    const { files, flags, leavesOut } = choose(args);
    const programs = new Set(files.flatMap((file) => GROUPS[groupOf(file) ?? ""] ?? []));
    const missing = P.provide([...programs]);
    if (missing.length > 0) throw new Error(missing.join("\n"));
    const options = [...WORKER_FLAGS, `--timeout=${TEST_TIMEOUT_MS}`, ...flags];
    const child = Bun.spawn([process.execPath, "test", ...options, ...files.map((file) => `./${file}`)], {
      cwd: ROOT,
      env: { ...process.env, ...(await startFor(programs)) },
      stdio: ["ignore", "inherit", "inherit"],
    });
    const code = await child.exited;
    if (leavesOut)
      process.stdout.write(
        "\nLeft out: tests with PostgreSQL, with a browser, and with other programs of the system.\n" +
          "They run with npm run test:all, or one group with npm run test:all -- engines, browser or system.\n",
      );
    return code;
  },
});
