import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { type Config, pathsOf } from "../config/config.ts";
import { writePrivateFile } from "../data-directory.ts";
import { generateSecret, limitsOf, toNewSecret } from "../domain/api-keys.ts";
import type { KeyStore } from "../domain/ports.ts";
import type { Context } from "./command.ts";
import { formatLimits, formatSecret, formatSecretFile } from "./output.ts";

interface FirstKey {
  /** Undefined if the secret is printed. */
  readonly file: string | undefined;
  /** Writes the file. Returns a message with the secret, or with the path of the file. */
  deliver(): string;
  /** For a secret that nobody received. */
  revoke(): Promise<void>;
}

/**
 * Creates a key on a new database: once a key has existed, no later start creates one. Standard output that is not a
 * terminal often becomes a log that others read, so the secret goes to a file.
 */
export async function createFirstKey(
  { keys, url }: { keys: KeyStore; url: string },
  config: Config,
  { clock, isTerminal }: Pick<Context, "clock" | "isTerminal">,
): Promise<FirstKey | undefined> {
  const secret = generateSecret(config.environment);
  const actor = { kind: "server", name: hostname() } as const;
  const at = clock.now();
  const newKey = { name: "first key", plan: "free", createdAt: at } as const;
  const key = await keys.createFirstKey(newKey, toNewSecret(secret), { actor, at });
  if (key === undefined) return undefined;
  const summary = `Created the first API key (${key.plan} plan, ${formatLimits(limitsOf(key, config.plans))})`;
  const file = isTerminal() ? undefined : resolve(pathsOf(config).firstKey);
  let isWritten = false;
  return {
    file,
    deliver() {
      if (file === undefined) return `${summary}:\n${formatSecret(secret, url)}`;
      writePrivateFile(file, `${secret}\n`);
      isWritten = true;
      return `${summary} in a file:\n${formatSecretFile(file, url)}`;
    },
    async revoke() {
      const revokedAt = clock.now();
      await keys.updateKey(key.id, { revokedAt }, { actor, at: revokedAt });
      if (file !== undefined && isWritten) rmSync(file, { force: true });
    },
  };
}
