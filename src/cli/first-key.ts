import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { type Config, pathsOf } from "../config/config.ts";
import { writePrivateFile } from "../data-directory.ts";
import { generateSecret, limitsOf, toNewSecret } from "../domain/api-keys.ts";
import type { KeyStore } from "../domain/ports.ts";
import { errorMessage } from "./arguments.ts";
import { type Context, Failure } from "./command.ts";
import { formatLimits, formatSecret, formatSecretFile } from "./output.ts";

interface Start {
  readonly startMessage: string;
  readonly app: { readonly keys: KeyStore; readonly url: string };
  readonly config: Config;
  readonly context: Pick<Context, "clock" | "screen" | "print">;
}

/**
 * Prints the start message of a server, with a key on a new database: once a key has existed, no later start creates
 * one. Standard output that is not a terminal often becomes a log that others read, so the secret goes to a file.
 * Resolves with the path of that file.
 */
export async function printWithFirstKey(start: Start): Promise<string | undefined | Failure> {
  const { startMessage, app, config, context } = start;
  const { keys, url } = app;
  const { clock, screen, print } = context;
  const secret = generateSecret(config.environment);
  const by = () => ({ actor: { kind: "server", name: hostname() }, at: clock.now() }) as const;
  const newKey = { name: "first key", plan: "free", createdAt: clock.now() } as const;
  const key = await keys.createFirstKey(newKey, toNewSecret(secret), by());
  if (key === undefined) {
    await print(startMessage);
    return undefined;
  }
  const summary = `Created the first API key (${key.plan} plan, ${formatLimits(limitsOf(key, config.plans))})`;
  const file = screen.isTerminal ? undefined : resolve(pathsOf(config).firstKey);
  let isWritten = false;
  try {
    if (file !== undefined) writePrivateFile(file, `${secret}\n`);
    isWritten = file !== undefined;
    const text =
      file === undefined ? `:\n${formatSecret(secret, url)}` : ` in a file:\n${formatSecretFile(file, url)}`;
    await print(`${startMessage}${summary}${text}\n`);
    return file;
  } catch (error) {
    await keys.updateKey(key.id, { revokedAt: clock.now() }, by());
    if (file !== undefined && isWritten) rmSync(file, { force: true });
    return new Failure(
      `${errorMessage(error)}; nobody received the first key, so it is revoked; create another with petstore keys create`,
    );
  }
}
