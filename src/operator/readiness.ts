import type { Request } from "../http1/index.ts";
import { withTimeout } from "../runtime/timeout.ts";
import type { Services } from "./services.ts";

/** Whether the server is ready, or a remark about one that is. */
type Verdict = boolean | string;

/** The checks by name. A check rejects or returns false while the server is not ready. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<Verdict> | Verdict>>;

interface Readiness {
  readonly status: 200 | 503;
  /** Plain text. */
  readonly body: string;
}

/** The free space that the disk must have. With less, SQLite cannot commit much. */
const NEEDED_BYTES = 1024 * 1024;
/** The timeout of a check, which is shorter than the default timeout of a Kubernetes probe, one second. */
const CHECK_TIMEOUT_MS = 800;

/**
 * Responds 200 if every check passes and 503 otherwise, in the format of Kubernetes' own /readyz: `?verbose` lists the
 * checks, and `?exclude=NAME` omits one.
 *
 * Requests share a check while it runs. Whoever can reach the listener can send any number of them without a token, and
 * the database has a bounded number of connections.
 */
export function readinessOf(
  checks: ReadinessChecks,
): (request: Pick<Request, "query">) => Promise<Readiness> {
  const running = new Map<string, Promise<Verdict>>();
  const run = (name: string, check: ReadinessChecks[string]) => {
    const result =
      running.get(name) ??
      withTimeout(CHECK_TIMEOUT_MS, Promise.try(check))
        .catch(() => false)
        .finally(() => running.delete(name));
    running.set(name, result);
    return result;
  };
  return async (request) => {
    const query = new URLSearchParams(request.query);
    const excluded = query.getAll("exclude");
    const included = Object.entries(checks).filter(([name]) => !excluded.includes(name));
    const results = await Promise.all(
      included.map(async ([name, check]) => [name, await run(name, check)] as const),
    );
    const isReady = results.every(([, verdict]) => verdict !== false);
    const isVerbose = query.has("verbose") || !isReady;
    const lines = results.map(([name, verdict]) => {
      if (verdict === false) return `[-]${name} failed\n`;
      return `[+]${name} ok${verdict === true ? "" : `: ${verdict}`}\n`;
    });
    const verdict = isReady ? "ok\n" : "not ready\n";
    return { status: isReady ? 200 : 503, body: isVerbose ? lines.join("") + verdict : verdict };
  };
}

export function readinessChecks(
  services: Pick<Services, "operatorPetStore" | "database" | "freeBytes" | "limiterMonitor" | "isDraining">,
): ReadinessChecks {
  return {
    database: async () => {
      await services.operatorPetStore.getPet(1n);
      // Any other server would have the same problem, and reads go on.
      if (services.database.waitsForStandby) return "reads; writes wait for a synchronous standby";
      return services.database.isAvailable || "reads; writes fail or wait for the disk";
    },
    disk: () => (services.freeBytes?.() ?? Infinity) >= NEEDED_BYTES,
    // The listeners open after the migrations, so the check always passes.
    migrations: () => true,
    "rate-limiter": () => services.limiterMonitor.isAvailable,
    draining: () => !services.isDraining(),
  };
}
