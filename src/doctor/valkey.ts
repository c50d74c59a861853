import { describeStorage, type StorageConfig } from "../config/storage.ts";
import { valkeyOf } from "../config/storage-urls.ts";
import { UsageError } from "../config/usage-error.ts";
import { inspectValkey } from "../rate-limit/valkey/maintenance.ts";
import { problemsOr, messageWithoutSecrets } from "./finding.ts";
import type { StoreFindings } from "./stored-data.ts";
import { valkeyCheck, valkeyProblems } from "./valkey-problems.ts";

export async function checkValkey(storage: StorageConfig, now: () => number): Promise<StoreFindings> {
  const name = describeStorage(storage).rateLimits;
  try {
    const { information, clockDifferenceMs } = await inspectValkey(valkeyOf(storage), now);
    const version = information
      ? `version ${information.version}`
      : "its version is not visible to this user";
    const ok = valkeyCheck.ok(`${name} is reachable; ${version}`);
    const findings = problemsOr(ok, information ? valkeyProblems(information) : []);
    return { findings, clocks: [{ name: "Valkey", differenceMs: clockDifferenceMs }] };
  } catch (error) {
    const reason = messageWithoutSecrets(error);
    if (error instanceof UsageError) return { findings: [valkeyCheck.error(reason, "correct --limits-ca")] };
    const message = `${name} cannot be used: ${reason}`;
    if (reason.startsWith("READONLY"))
      return { findings: [valkeyCheck.error(message, "connect to the primary")] };
    const remedy =
      "check --limits-url, its user's permissions (docs/deployment.md) and that Valkey runs; until then PostgreSQL counts, or on SQLite the server itself";
    return { findings: [valkeyCheck.error(message, remedy)] };
  }
}
