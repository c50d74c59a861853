import { describeStorage, type StorageConfig } from "../config/config.ts";
import { readTextFile } from "../config/text-file.ts";
import { UsageError, withoutSecrets } from "../config/usage-error.ts";
import { inspectValkey, type ValkeyInformation } from "../rate-limit/valkey/inspect.ts";
import { check, type Finding, reasonOf } from "./finding.ts";
import type { EngineFindings } from "./postgres.ts";

const valkey = check("Valkey");
const OLDEST_MAJOR_VERSION = 7;

export async function checkValkey(storage: StorageConfig, now: () => number): Promise<EngineFindings> {
  const { limitsUrls: urls = [], limitsCaFile, environment } = storage;
  const ca = limitsCaFile === undefined ? undefined : readTextFile("--limits-ca", limitsCaFile);
  if (ca instanceof UsageError)
    return { findings: [valkey.error(ca.message, "correct --limits-ca")], clocks: [] };
  const name = describeStorage(storage).rateLimits;
  try {
    const prefix = `petstore:${environment}:`;
    const state = await inspectValkey({ urls, ...(ca !== undefined && { ca }), prefix, now });
    const findings = state.information ? problemsOf(state.information) : [];
    if (findings.length === 0) {
      const version = state.information
        ? `version ${state.information.version}`
        : "its version is not visible to this user";
      findings.push(valkey.ok(`${name} is reachable; ${version}`));
    }
    return { findings, clocks: [{ name: "Valkey", differenceMs: state.clockDifferenceMs }] };
  } catch (error) {
    const message = `${name} cannot be used: ${withoutSecrets(reasonOf(error))}`;
    const remedy =
      "check --limits-url, its user's permissions (docs/deployment.md) and that Valkey runs; until then each server counts on its own";
    return { findings: [valkey.error(message, remedy)], clocks: [] };
  }
}

function problemsOf({ version, maxmemoryPolicy, maxmemoryBytes, isReplica }: ValkeyInformation): Finding[] {
  const findings: Finding[] = [];
  if (Number.parseInt(version, 10) < OLDEST_MAJOR_VERSION) {
    findings.push(valkey.error(`version ${version} is too old`, "use Valkey 7.2 or later, or Redis 7"));
  }
  if (isReplica)
    findings.push(valkey.error("the server is a replica and accepts no writes", "connect to the primary"));
  if (maxmemoryBytes > 0 && maxmemoryPolicy !== "noeviction") {
    const message = `maxmemory-policy is ${maxmemoryPolicy}, so Valkey may drop counts and bans when its memory is full`;
    findings.push(valkey.warning(message, "set maxmemory-policy noeviction"));
  }
  return findings;
}
