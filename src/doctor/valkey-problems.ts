import type { ValkeyInformation } from "../rate-limit/valkey/maintenance.ts";
import { check, type PossibleFinding } from "./finding.ts";

export const valkeyCheck = check("Valkey");
const OLDEST_MAJOR_VERSION = 7;

export function valkeyProblems(information: ValkeyInformation): readonly PossibleFinding[] {
  const { version, maxmemoryPolicy, maxmemoryBytes } = information;
  return [
    Number.parseInt(version, 10) < OLDEST_MAJOR_VERSION &&
      valkeyCheck.error(`version ${version} is too old`, "use Valkey 7.2 or later, or Redis 7"),
    maxmemoryBytes > 0 &&
      maxmemoryPolicy !== "noeviction" &&
      valkeyCheck.warning(
        `maxmemory-policy is ${maxmemoryPolicy}, so Valkey may drop counts and bans when its memory is full`,
        "set maxmemory-policy noeviction",
      ),
  ];
}
