import type { ValueStore } from "../domain/ports/stored-values.ts";
import { typedDuration } from "../text/durations.ts";
import { DAY_MS } from "../text/time-units.ts";
import { UsageError } from "./usage-error.ts";

export const DEFAULT_AUDIT_RETENTION_MS = 400 * DAY_MS;

/** Release 1.3 stored the setting for all servers, as its milliseconds or "null" for ever. */
const STORED_BY_EARLIER_RELEASE = "audit-retention";

/**
 * Returns the age at which a server deletes entries of the audit trail; null for never. Without the setting it throws
 * if release 1.3 has stored another value: the default could delete what an operator has decided to keep.
 */
export async function auditRetentionOf(
  given: number | null | undefined,
  storedValues: Pick<ValueStore, "readValues">,
): Promise<number | null> {
  if (given !== undefined) return given;
  const { [STORED_BY_EARLIER_RELEASE]: stored } = await storedValues.readValues();
  if (stored === undefined || Number(stored) === DEFAULT_AUDIT_RETENTION_MS)
    return DEFAULT_AUDIT_RETENTION_MS;
  const text = stored === "null" ? "forever" : typedDuration(Number(stored));
  throw new UsageError(
    `release 1.3 has stored --audit-retention ${text} for all servers; since 2.0 it is a setting of each server, so start this one with it, or with another value`,
  );
}
