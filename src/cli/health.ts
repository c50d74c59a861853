import { originOf } from "../config/config.ts";
import { DEFAULT_PORT, SETTINGS } from "../config/options.ts";
import { HEALTH_PATH } from "../domain/constants.ts";
import { systemErrorField } from "./arguments.ts";
import { defineCommand, Failure } from "./command.ts";

export const health = defineCommand({
  name: "health",
  summary: "Ask the server on this machine whether it serves",
  description:
    "Requests /healthz of the server with these settings. The exit status is 0 if it serves, and 1 if it does not respond or is about to stop. It is for health checks of containers, which have no other program.",
  options: {
    env: SETTINGS.env,
    "env-file": SETTINGS["env-file"],
    host: SETTINGS.host,
    port: SETTINGS.port,
    "tls-cert": SETTINGS["tls-cert"],
  },
  examples: ["petstore health", "petstore health --port 9000"],
  async run({ values }) {
    const { env, host, port = DEFAULT_PORT[env], "tls-cert": certificate } = values;
    const url = originOf({ host, port, isTls: certificate !== undefined }) + HEALTH_PATH;
    const problem = await problemOf(url);
    if (problem !== undefined) throw new Failure(`the server at ${url} ${problem}`);
    return `The server at ${url} serves.\n`;
  },
});

/** Why the server does not serve; undefined if it does. */
async function problemOf(url: string): Promise<string | undefined> {
  try {
    const status = await statusOf(url);
    return status === 200 ? undefined : `responds with ${status}; it is about to stop`;
  } catch (error) {
    const code = systemErrorField(error, "code") ?? "timeout";
    return `does not respond (${code === "ABORT_ERR" ? "timeout" : code})`;
  }
}

const TIMEOUT_MS = 2_000;

export async function statusOf(url: string): Promise<number | undefined> {
  const { getText, UNVERIFIED_TLS } = await import("../operator/get-text.ts");
  return (await getText(url, { tls: UNVERIFIED_TLS, timeoutMs: TIMEOUT_MS })).status;
}
