import {
  type ApiKey,
  type Environment,
  hashSecret,
  generateSecret,
  type NewKey,
} from "../domain/api-keys.ts";
import type { KeyStore } from "../domain/ports.ts";

/** A new key with its first secret. The secret leaves here and is kept nowhere. */
export async function issueKey(
  keys: KeyStore,
  environment: Environment,
  newKey: NewKey,
): Promise<{ key: ApiKey; secret: string }> {
  const secret = generateSecret(environment);
  return { key: await keys.createKey(newKey, hashSecret(secret)), secret };
}
