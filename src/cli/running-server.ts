import { hostname } from "node:os";
import { describeEnvironment, type StorageConfig } from "../config/config.ts";
import type { DataDirectory } from "../data-directory.ts";
import { readOwnFile } from "../runtime/own-files.ts";
import type { ServerRegister, SettingsStore } from "../domain/ports.ts";
import { Failure } from "./command.ts";

/** The maximum of servers in the register that are asked. */
const MAX_ASKED = 10;

interface RunningServer {
  readonly adminUrl: string;
  /** The name of its machine. */
  readonly name: string;
}

/**
 * Finds a server that proves to know the secret: the last one of this data directory, or one in the register. A server
 * that is killed leaves its URL behind, and another program on its port must not get a code or a signature.
 */
export async function findRunningServer(
  storage: StorageConfig,
  { settings, servers }: { readonly settings: SettingsStore; readonly servers: ServerRegister },
) {
  const { isServerOfDatabase, reasonNotToAsk } = await import("../operator/server-requests.ts");
  const { ServerSecret } = await import("../operator/server-secret.ts");
  const where = describeEnvironment(storage);
  const secret = await ServerSecret.open(settings);
  const own = serverOf(storage.directory);
  const proven = own && (await isServerOfDatabase(own, secret).catch(() => undefined));
  if (own && proven) return { ...own, secret };
  const registered = storage.limitsUrls ? await servers.list() : [];
  const asked = registered.filter((each) => reasonNotToAsk(each, { secret, hasTls: false }) === undefined);
  // The first server to respond is used, so that one that stands still delays nothing.
  const found = await Promise.any(
    asked.slice(0, MAX_ASKED).map(async ({ adminUrl, name }) => {
      if (adminUrl && (await isServerOfDatabase({ adminUrl, name }, secret)))
        return { adminUrl, name, secret };
      throw new Error("not proven");
    }),
  ).catch(() => undefined);
  if (found) return found;
  throw new Failure(
    own === undefined
      ? `no server with a listener for operators runs in ${where}; start it with petstore serve`
      : proven === undefined
        ? `no server responds at ${own.adminUrl}; start it with petstore serve`
        : `what listens at ${own.adminUrl} is not a server of ${where}: it cannot prove that it knows the secret in the database; find out which program it is, and start the server again`,
  );
}

/** The running server of the data directory. */
function serverOf({ files: { adminUrl: file } }: DataDirectory): RunningServer | undefined {
  const adminUrl = readOwnFile(file)?.trim();
  return adminUrl === undefined ? undefined : { adminUrl, name: hostname() };
}
