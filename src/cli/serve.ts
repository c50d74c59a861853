import { resolve } from "node:path";
import { configOf, type Config, SETTINGS, whereIs } from "../config.ts";
import { createLog } from "../log.ts";
import packageJson from "../../package.json" with { type: "json" };
import { Failure } from "./command.ts";
import { define } from "./define.ts";
import { explain, textOf } from "./explain.ts";
import { greet } from "./greeting.ts";

export const serve = define({
  name: "serve",
  summary: "Serve the interface",
  description:
    "Serves one environment until it is told to stop (Ctrl-C, SIGTERM, SIGHUP): requests under way are finished, then it exits. When no key exists yet, one is made and printed, once. What is said here goes to standard output, the log to standard error.",
  positionals: {},
  options: SETTINGS,
  required: [],
  asServed: {},
  examples: [
    "petstore serve",
    "petstore serve --env staging",
    "petstore serve --host 0.0.0.0 --public-url https://api.example.com --trust-proxy 10.0.0.0/8",
    "petstore serve --free-limits 120/5000 --ban-length 15m",
  ],
  async run({ values }, context) {
    const config = configOf(values);
    const stopAsked = context.stopAsked();
    const log = createLog();
    const { startApp } = await import("../app.ts");
    const app = await startApp(config, { log }).catch((error: unknown) => cannotListen(error, config));
    if (app instanceof Failure) return app;
    let stoppingSince: number;
    try {
      const failure = await greet(app, config, context);
      if (failure) return failure;
      log.info("serving", about(config, app.url));
      log.info("stopping", { signal: await stopAsked });
      stoppingSince = performance.now();
    } finally {
      await app.close();
    }
    log.info("stopped", { afterMs: Math.round(performance.now() - stoppingSince) });
    return undefined;
  },
});

/** What whoever reads the log wants to know of a server that he did not start. */
function about(config: Config, address: string): Readonly<Record<string, unknown>> {
  const { environment, dataDir, databaseUrl } = config;
  const { data, limits } = whereIs(config);
  const store = databaseUrl === undefined ? `SQLite in ${resolve(dataDir)}` : data;
  return { version: packageJson.version, environment, address, store, limits, pid: process.pid };
}

/** What the runtime says about listening names neither the address nor a way out; anything else is left as it is. */
function cannotListen(error: unknown, { host, port }: Config): Failure {
  if (!isAboutListening(error)) throw error;
  const reason = LISTEN_REASONS[textOf(error, "code") ?? "ENOTFOUND"] ?? explain(error);
  return new Failure(`cannot listen on ${host} port ${port}: ${reason}`);
}

/** For a host name that has no address, the runtime says that it failed to listen there, and nothing else. */
function isAboutListening(error: unknown): boolean {
  if (error instanceof Error && error.message.startsWith("Failed to listen")) return true;
  return ["listen", "getaddrinfo"].includes(textOf(error, "syscall") ?? "");
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program does so already; stop it or choose another --port",
  EADDRNOTAVAIL: "this machine has no such address; see --host",
  ENOTFOUND: "no such host; see --host",
  EINVAL: "no such host; see --host",
  EACCES: "permission denied; ports below 1024 are for privileged programs, so choose another --port",
};
