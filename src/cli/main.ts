import { readFileSync } from "node:fs";
import { processVariables } from "../config.ts";
import { Problem } from "../config/problem.ts";
import type { Context, Outcome } from "./command.ts";
import { explain, textOf } from "./explain.ts";
import { runProgram } from "./program.ts";
import { ignoresHangup, stopOnSignals } from "./signals.ts";

/** Resolves when the text has left the process: an exit before that would cut a pipe off at 64 KiB. */
function write(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

const complain = (line: string) => write(process.stderr, `petstore: ${line}\n`).catch(() => {});

/** Nothing where the system has no such file. */
function ownStatus(): string {
  try {
    return readFileSync("/proc/self/status", "utf8");
  } catch {
    return "";
  }
}

const context: Context = {
  variables: processVariables(),
  clock: { now: Date.now },
  print: (text) => write(process.stdout, text),
  warn: (line) => void complain(line),
  stopAsked: () =>
    stopOnSignals({
      on: (signal, listener) => process.on(signal, listener),
      exit: (code) => process.exit(code),
      complain,
      elapsed: () => performance.now(),
      isHangupIgnored: () => ignoresHangup(ownStatus()),
    }),
};

async function exitCode(run: () => Promise<Outcome>): Promise<number> {
  try {
    const outcome = await run();
    if (outcome === undefined) return 0;
    await complain(outcome.message);
    return outcome instanceof Problem ? 2 : 1;
  } catch (error) {
    // Whoever reads our output may stop early, as `head` does; that is no failure of ours.
    if (textOf(error, "code") === "EPIPE") return 0;
    await complain(explain(error));
    return 1;
  }
}

// A stream's error reaches the callback of the write as well; unheard here, it would end the process with a stack.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
for (const event of ["uncaughtException", "unhandledRejection"]) {
  process.on(event, async (error: unknown) => process.exit(await exitCode(() => Promise.reject(error))));
}

process.exit(await exitCode(() => runProgram(process.argv.slice(2), context)));
