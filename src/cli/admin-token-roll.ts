import { resolve } from "node:path";
import { ADMIN_TOKEN_OPTIONS } from "../config/admin-options.ts";
import { pathsOf, type StorageConfig, storageOf } from "../config/config.ts";
import { STORAGE_OPTIONS } from "../config/options.ts";
import { type Context, defineCommand, Failure } from "./command.ts";
import { errorMessage } from "./error-message.ts";
import { databaseExists, withKeyStore } from "./keys/key-store.ts";

export const adminTokenRoll = defineCommand({
  name: "admin-token roll",
  summary: "Replace the token that operators sign in with",
  description:
    "Replaces the admin token in --data. A running server takes the new one within a second: the old token stops working, and everybody is signed out. A token in a variable or in a file of your own is replaced there.",
  options: { ...STORAGE_OPTIONS, ...ADMIN_TOKEN_OPTIONS },
  examples: ["petstore admin-token roll", "petstore admin-token roll --env staging"],
  async run({ values, source }, context) {
    const given = source("admin-token-file") ?? source("admin-token");
    if (given) {
      return new Failure(
        `the admin token is set by ${given.name}; replace it there, and a server that reads it from a file takes it within a second`,
      );
    }
    const storage = storageOf(values);
    const file = resolve(pathsOf(storage).adminToken);
    const { rollTokenFile } = await import("../admin/token-file.ts");
    rollTokenFile(file);
    await recordRoll(storage, context);
    await context.print(
      `Replaced the admin token in ${file}. A running server takes it within a second, and everybody is signed out.\nSign in again with the URL that petstore admin-url prints.\n`,
    );
    return undefined;
  },
});

/** A token that leaked can be replaced while the database is unavailable. */
async function recordRoll(
  storage: StorageConfig,
  { clock, user, warn }: Pick<Context, "clock" | "user" | "warn">,
): Promise<void> {
  if (!databaseExists(storage)) return;
  const actor = { kind: "command line", ...(user !== undefined && { name: user }) } as const;
  try {
    await withKeyStore(storage, ({ audit }) =>
      audit.recordAudit({ at: clock.now(), actor, action: "admin.token-rolled" }),
    );
  } catch (error) {
    warn(`the roll is not in the audit trail: ${errorMessage(error)}`);
  }
}
