import { originOf } from "../config/config.ts";
import { DEFAULT_PORT, SETTINGS } from "../config/options.ts";
import { HEALTH_PATH } from "../domain/constants.ts";
import { systemErrorField } from "./arguments.ts";
import { defineCommand, Failure } from "./command.ts";

const TIMEOUT_MS = 2_000;
/** Of a response, whoever it is that responds. */
const MAX_TEXT = 10_000;

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
  async run({ values }, { print }) {
    const { env, host, port = DEFAULT_PORT[env], "tls-cert": certificate } = values;
    const url = originOf({ host, port, isTls: certificate !== undefined }) + HEALTH_PATH;
    const problem = await problemOf(url);
    if (problem !== undefined) return new Failure(`the server at ${url} ${problem}`);
    await print(`The server at ${url} serves.\n`);
    return undefined;
  },
});

/** Why the server does not serve; undefined if it does. */
export async function problemOf(url: string): Promise<string | undefined> {
  try {
    const status = await statusOf(url);
    return status === 200 ? undefined : `responds with ${status}; it is about to stop`;
  } catch (error) {
    const code = systemErrorField(error, "code") ?? "timeout";
    return `does not respond (${code === "ABORT_ERR" ? "timeout" : code})`;
  }
}

/**
 * `fetch` would ask the proxy that HTTP_PROXY names. The certificate is for the name that clients use, which is not
 * this address. The modules are loaded here, because that takes 9 ms, which no other command should wait for.
 */
export async function responseOf(url: string): Promise<{ status: number | undefined; text: string }> {
  const { get } = await (url.startsWith("https:") ? import("node:https") : import("node:http"));
  const options = {
    signal: AbortSignal.timeout(TIMEOUT_MS),
    agent: false,
    rejectUnauthorized: false,
  } as const;
  return new Promise((resolve, reject) => {
    const request = get(url, options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text = (text + chunk).slice(0, MAX_TEXT)));
      response.on("end", () => resolve({ status: response.statusCode, text }));
      response.on("error", reject);
    });
    request.on("error", reject);
  });
}

export async function statusOf(url: string): Promise<number | undefined> {
  return (await responseOf(url)).status;
}
