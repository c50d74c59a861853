import { existsSync, readFileSync } from "node:fs";
import { describeEnvironment, pathsOf, type StorageConfig } from "../config/config.ts";
import type { SettingsStore } from "../domain/ports.ts";
import { Failure } from "./command.ts";

/**
 * The server of this data directory that started last, which has proven to know the secret. One that is killed leaves
 * its URL behind, and a program that has taken its port must not get a code or a signature.
 */
export async function findRunningServer(storage: StorageConfig, settings: SettingsStore) {
  const { isProven } = await import("../operator/server-requests.ts");
  const { ServerSecret } = await import("../operator/server-secret.ts");
  const where = describeEnvironment(storage);
  const { adminUrl: file } = pathsOf(storage);
  if (!existsSync(file)) {
    throw new Failure(
      `no server with a listener for operators runs in ${where}; start it with petstore serve`,
    );
  }
  const adminUrl = readFileSync(file, "utf8").trim();
  const secret = await ServerSecret.open(settings);
  const proven = await isProven(adminUrl, secret).catch(() => undefined);
  if (proven) return { adminUrl, secret };
  throw new Failure(
    proven === undefined
      ? `no server responds at ${adminUrl}; start it with petstore serve`
      : `what listens at ${adminUrl} is not a server of ${where}: it cannot prove that it knows the secret in the database; find out which program it is, and start the server again`,
  );
}
