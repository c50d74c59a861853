import type { StopSignal } from "../../src/cli/signals.ts";
import { spawnPetstore } from "./workbench.ts";

export interface Served {
  readonly url: string;
  /** Everything that was said until it was ready. */
  readonly greeting: string;
  readonly secret: string | undefined;
  readonly child: ReturnType<typeof spawnPetstore>;
  /** Sends the signal and gives the exit code. */
  stop(signal: StopSignal): Promise<number>;
  /** The lines of its log, once it has ended. */
  log(): Promise<string[]>;
}

/** A server on a free port; resolves when it has said where it is. */
export function serve(data: string, ...argv: string[]): Promise<Served> {
  const anyPort = argv.includes("--port") ? [] : ["--port", "0"];
  return served(spawnPetstore(["serve", ...anyPort, "--data", data, ...argv]));
}

export async function served(child: Served["child"]): Promise<Served> {
  const greeting = await untilReady(child);
  const [, url = ""] = /^ {2}Interface +(\S+)$/m.exec(greeting) ?? [];
  const [secret] = /pet_(?:live|test)_\w+/.exec(greeting) ?? [];
  return {
    url,
    greeting,
    secret,
    child,
    stop(signal) {
      child.kill(signal);
      return child.exited;
    },
    log: async () => (await child.stderr.text()).split("\n").slice(0, -1),
  };
}

/** It greets in one write, so what has the last line of a greeting in it is all of it. */
async function untilReady({ stdout, stderr }: Served["child"]): Promise<string> {
  const decoder = new TextDecoder();
  let said = "";
  for await (const chunk of stdout) {
    said += decoder.decode(chunk, { stream: true });
    if (said.includes("\n  Limits ")) return said;
  }
  throw new Error(`it did not start: ${await stderr.text()}`);
}
