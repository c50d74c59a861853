import type { ApiKey } from "../src/domain/api-keys.ts";
import type { NewSecret } from "../src/domain/secrets.ts";
import type { Attribution } from "../src/domain/audit.ts";
import type { KeyStore } from "../src/domain/ports/keys.ts";

/** Who changes keys in tests that do not read the audit trail. */
export const BY: Attribution = { actor: { kind: "server", name: "test" }, at: 0 };

/** A text in place of the SHA-256 of a secret. */
export const hash = (n: number) => n.toString(16).padStart(64, "0");
export const storedSecret = (n: number): NewSecret => ({ hash: hash(n), hint: `pet_live_${n}…${n}` });

/** Oldest first. */
export async function allKeys(keys: KeyStore): Promise<readonly ApiKey[]> {
  return (await keys.listKeys({ limit: 1_000, now: 0 })).items;
}
