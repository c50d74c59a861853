import type { NewSecret } from "../src/domain/api-keys.ts";
import type { Attribution } from "../src/domain/audit.ts";

/** For changes of keys in tests that do not read the audit trail. */
export const BY: Attribution = { actor: { kind: "server", name: "test" }, at: 0 };

/** In place of the SHA-256 of a secret. */
export const hash = (n: number) => n.toString(16).padStart(64, "0");
export const storedSecret = (n: number): NewSecret => ({ hash: hash(n), hint: `pet_live_${n}…${n}` });
