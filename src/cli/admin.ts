import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { openStores } from "../adapters.ts";
import { describeEnvironment, pathsOf, type StorageConfig, storageOf } from "../config/config.ts";
import { ADMIN_TOKEN_OPTIONS, STORAGE_OPTIONS } from "../config/options.ts";
import { readTextFile, UsageError } from "../config/usage-error.ts";
import { errorMessage } from "./arguments.ts";
import { attributionOf, type Context, defineCommand, Failure } from "./command.ts";
import { problemOf, statusOf } from "./health.ts";
import { UNCHANGED, YES_OPTION } from "./operation-command.ts";
import { databaseExists } from "./operator.ts";

export const adminUrl = defineCommand({
  name: "admin-url",
  summary: "Print the URL of the console, which signs in whoever opens it",
  description:
    "Prints the URL of the console, with the admin token. Of several servers with this data directory, it is the one that started last. Whoever has the URL is an operator, so treat it like a password.",
  options: { ...STORAGE_OPTIONS, ...ADMIN_TOKEN_OPTIONS },
  examples: ["petstore admin-url", "petstore admin-url --env staging"],
  async run({ values }, { print }) {
    const storage = storageOf(values);
    const paths = pathsOf(storage);
    // A server that is killed leaves the file behind.
    const url = savedText(paths.adminUrl);
    if (typeof url !== "string") {
      return new Failure(
        `no server with a listener for operators runs in ${describeEnvironment(storage)}; start it with petstore serve`,
      );
    }
    if (await problemOf(`${url}/livez`))
      return new Failure(`no server responds at ${url}; start it with petstore serve`);
    const token = values["admin-token"] ?? savedText(paths.adminToken);
    if (token instanceof UsageError) return token;
    if (token === undefined) {
      return new Failure(
        "the server has its admin token from a variable or a file; set --admin-token-file here too",
      );
    }
    await print(`${url}/?token=${encodeURIComponent(token)}\n`);
    return undefined;
  },
});

/** The text of a file in --data; undefined if there is none. */
function savedText(path: string): string | UsageError | undefined {
  if (!existsSync(path)) return undefined;
  const text = readTextFile("the file in --data", path);
  return typeof text === "string" ? text.trim() : text;
}

export const adminTokenRotate = defineCommand({
  name: "admin-token rotate",
  summary: "Replace the token that operators sign in with",
  description:
    "Replaces the admin token in --data. A running server takes the new one within a second, which the command verifies: the old token stops working, and everybody is signed out. A token in a variable or in a file of your own is replaced there.",
  options: { ...YES_OPTION, ...STORAGE_OPTIONS, ...ADMIN_TOKEN_OPTIONS },
  examples: ["petstore admin-token rotate", "petstore admin-token rotate --env staging --yes"],
  async run({ values, source }, context) {
    const given = source("admin-token-file") ?? source("admin-token");
    if (given) {
      return new Failure(
        `the admin token is set by ${given.name}; replace it there, and a server that reads it from a file takes it within a second`,
      );
    }
    const storage = storageOf(values);
    const question = `Replace the admin token of ${describeEnvironment(storage)} and sign everybody out?`;
    if (!values.yes && !(await context.confirm(question))) return new Failure(UNCHANGED);
    const { adminToken, adminUrl: urlFile } = pathsOf(storage);
    const file = resolve(adminToken);
    const { rotateTokenFile } = await import("../operator/token.ts");
    const token = rotateTokenFile(file);
    await recordRotation(storage, context);
    const url = savedText(urlFile);
    if (typeof url !== "string" || (await problemOf(`${url}/livez`))) {
      await context.print(
        `Replaced the admin token in ${file}. No server runs here; the next one takes it.\n`,
      );
      return undefined;
    }
    if (!(await isAccepted(url, token))) {
      return new Failure(
        `${file} has a new admin token, and the server at ${url} still rejects it: it cannot read the file, or has its token from elsewhere; see its log, and replace the token there`,
      );
    }
    await context.print(
      `Replaced the admin token in ${file}. The server at ${url} accepts it, and everybody is signed out.\nSign in again with the URL that petstore admin-url prints.\n`,
    );
    return undefined;
  },
});

/** A server takes a new token within a second, and one on a busy machine later. */
async function isAccepted(url: string, token: string): Promise<boolean> {
  for (const waitMs of [700, 300, 1_000, 2_000]) {
    await Bun.sleep(waitMs);
    const status = statusOf(`${url}/api/settings`, { Authorization: `Bearer ${token}` });
    if ((await status.catch(() => undefined)) === 200) return true;
  }
  return false;
}

/** A token that leaked can be replaced while the database is unavailable. */
async function recordRotation(
  storage: StorageConfig,
  { clock, user, warn }: Pick<Context, "clock" | "user" | "warn">,
): Promise<void> {
  if (!databaseExists(storage)) return;
  try {
    const { audit, close } = await openStores(storage);
    await audit
      .recordAudit({ ...attributionOf({ clock, user }), action: "admin.token-rolled" })
      .finally(close);
  } catch (error) {
    warn(`the rotation is not in the audit trail: ${errorMessage(error)}`);
  }
}
