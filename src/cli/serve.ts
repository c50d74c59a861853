import { configOf, type Config, SETTINGS } from "../config.ts";
import { hashSecret, mintSecret } from "../domain/keys.ts";
import type { KeyStore } from "../domain/ports.ts";
import { limitsOf } from "../domain/plans.ts";
import { Failure } from "./command.ts";
import { define } from "./define.ts";
import { explain, textOf } from "./explain.ts";
import { limitsInWords } from "./key-view.ts";
import { shownOnce } from "./secret.ts";
import { columns } from "./table.ts";

export const serve = define({
  name: "serve",
  summary: "Serve the interface",
  description:
    "Serves one environment until it is told to stop (Ctrl-C, SIGTERM): requests under way are finished, then it exits. When no key exists yet, one is made and printed, once. What is said here goes to standard output, the log to standard error.",
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
  async run({ values }, { clock, print, stopAsked }) {
    const config = configOf(values);
    const stopped = stopAsked();
    const { startApp } = await import("../app.ts");
    const app = await startApp(config).catch((error: unknown) => cannotListen(error, config));
    if (app instanceof Failure) return app;
    try {
      await print(greeting(config, app.url) + (await firstKey(app, config, clock.now())));
      await stopped;
    } finally {
      await app.close();
    }
    return undefined;
  },
});

/** What the runtime says about listening names neither the address nor a way out; anything else is left as it is. */
function cannotListen(error: unknown, { host, port }: Config): Failure {
  if (textOf(error, "syscall") !== "listen") throw error;
  const reason = LISTEN_REASONS[textOf(error, "code") ?? ""] ?? explain(error);
  return new Failure(`cannot listen on ${host} port ${port}: ${reason}`);
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program does so already; stop it or choose another --port",
  EADDRNOTAVAIL: "this machine has no such address; see --host",
  // What the runtime answers for a host name that has no address.
  EINVAL: "no such host; see --host",
  EACCES: "permission denied; ports below 1024 are for privileged programs, so choose another --port",
};

function greeting({ environment, dataDir }: Config, url: string): string {
  const origin = url.replace(/\/v1$/, "");
  const rows = [
    ["  Interface", url],
    ["  Docs", `${origin}/docs`],
    ["  OpenAPI", `${origin}/openapi.json`],
    ["  Data", dataDir],
  ];
  return `Petstore is serving ${environment}. Stop it with Ctrl-C.\n\n${columns(rows)}\n`;
}

/** A newcomer leaves with a key in hand; once any key was ever made, no later start prints one. */
async function firstKey(app: { keys: KeyStore; url: string }, config: Config, now: number): Promise<string> {
  const secret = mintSecret(config.environment);
  const draft = { name: "first key", plan: "free", createdAt: now } as const;
  const key = await app.keys.createFirstKey(draft, hashSecret(secret));
  if (key === undefined) return "";
  const limits = limitsInWords(limitsOf(key, config.plans));
  return `No key existed yet, so here is one (${key.plan}: ${limits}):\n${shownOnce(secret, app.url)}\n`;
}
