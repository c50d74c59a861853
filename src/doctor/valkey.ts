import { describeStorage, type StorageConfig } from "../config/storage.ts";
import { valkeyOf } from "../config/storage-urls.ts";
import { UsageError } from "../config/usage-error.ts";
import { inspectValkey, type ValkeyInformation } from "../rate-limit/valkey/maintenance.ts";
import { check, type Finding, problemsOr, messageWithoutSecrets } from "./finding.ts";
import type { StoreFindings } from "./stored-data.ts";

const valkey = check("Valkey");
const OLDEST_MAJOR_VERSION = 7;

export async function checkValkey(storage: StorageConfig, now: () => number): Promise<StoreFindings> {
  const name = describeStorage(storage).rateLimits;
  try {
    const { information, clockDifferenceMs } = await inspectValkey(valkeyOf(storage), now);
    const version = information
      ? `version ${information.version}`
      : "its version is not visible to this user";
    const ok = valkey.ok(`${name} is reachable; ${version}`);
    const findings = problemsOr(ok, information ? valkeyProblems(information) : []);
    return { findings, clocks: [{ name: "Valkey", differenceMs: clockDifferenceMs }] };
  } catch (error) {
    const reason = messageWithoutSecrets(error);
    if (error instanceof UsageError) return { findings: [valkey.error(reason, "correct --limits-ca")] };
    const message = `${name} cannot be used: ${reason}`;
    if (reason.startsWith("READONLY")) return { findings: [valkey.error(message, "connect to the primary")] };
    const remedy =
      "check --limits-url, its user's permissions (docs/deployment.md) and that Valkey runs; until then PostgreSQL counts, or on SQLite the server itself";
    return { findings: [valkey.error(message, remedy)] };
  }
}

function valkeyProblems(information: ValkeyInformation): readonly (Finding | false)[] {
  const { version, maxmemoryPolicy, maxmemoryBytes } = information;
  return [
    Number.parseInt(version, 10) < OLDEST_MAJOR_VERSION &&
      valkey.error(`version ${version} is too old`, "use Valkey 7.2 or later, or Redis 7"),
    maxmemoryBytes > 0 &&
      maxmemoryPolicy !== "noeviction" &&
      valkey.warning(
        `maxmemory-policy is ${maxmemoryPolicy}, so Valkey may drop counts and bans when its memory is full`,
        "set maxmemory-policy noeviction",
      ),
  ];
}
