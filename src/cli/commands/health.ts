import { originOf } from "../../config/listen-urls.ts";
import { DEFAULT_PORT, SETTINGS } from "../../config/options.ts";
import type { ValuesOf } from "../../config/parse-options.ts";
import { DataDirectory } from "../../data-directory.ts";
import { readOwnFile } from "../../runtime/own-files.ts";
import { HEALTH_PATH } from "../../domain/paths.ts";
import { systemErrorField } from "../../runtime/system-error.ts";
import { defineCommand, Failure } from "../command.ts";

const OPTIONS = {
  env: SETTINGS.env,
  "env-file": SETTINGS["env-file"],
  data: SETTINGS.data,
  host: SETTINGS.host,
  port: SETTINGS.port,
  "tls-cert": SETTINGS["tls-cert"],
} as const;

export const health = defineCommand({
  name: "health",
  summary: "Ask the server on this machine whether it serves",
  description:
    "Requests /healthz of a server: with --port, the one on that port; without, the one that started last with the data directory. The exit status is 0 if it serves, and 1 if it does not respond or is about to stop. It is for health checks of containers, which have no other program.",
  data: "nothing",
  options: OPTIONS,
  examples: ["petstore health", "petstore health --data /var/lib/petstore", "petstore health --port 9000"],
  async run({ values }) {
    const url = originIn(values) + HEALTH_PATH;
    const problem = await problemOf(url);
    if (problem !== undefined) throw new Failure(`the server at ${url} ${problem}`);
    return `The server at ${url} serves.\n`;
  },
});

/** The origin of the server. Without a port, it is in the data directory. */
function originIn(values: ValuesOf<typeof OPTIONS>): string {
  const { env: environment, data: path, host, port, "tls-cert": certificate } = values;
  const saved =
    port === undefined ? readSaved(new DataDirectory({ path, environment }).files.url) : undefined;
  return (
    saved ?? originOf({ host, port: port ?? DEFAULT_PORT[environment], isTls: certificate !== undefined })
  );
}

/** Undefined if no server runs there, or if this user may not read it. */
function readSaved(file: string): string | undefined {
  try {
    return readOwnFile(file)?.trim();
  } catch {
    return undefined;
  }
}

/** Why the server does not serve; undefined if it does. */
async function problemOf(url: string): Promise<string | undefined> {
  try {
    const status = await statusOf(url);
    return status === 200 ? undefined : `responds with ${status}; it is about to stop`;
  } catch (error) {
    return `does not respond (${systemErrorField(error, "code")})`;
  }
}

const TIMEOUT_MS = 2_000;
/** A server responds with a line. */
const MAX_BYTES = 16 * 1_024;

export async function statusOf(url: string): Promise<number | undefined> {
  const { sendRequest, UNVERIFIED_TLS } = await import("../../runtime/outgoing-request.ts");
  const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES };
  return (await sendRequest(url, { ...bounds, tls: UNVERIFIED_TLS, isDirect: true })).status;
}
