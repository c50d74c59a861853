import { fstatSync } from "node:fs";
import { createClock } from "../clock.ts";
import { processVariables } from "../config/variables.ts";
import { EXECUTABLE } from "../executable.ts";
import { createLog, type LogOptions } from "../observe/log.ts";
import { systemErrorField } from "../runtime/system-error.ts";
import { isBug } from "./error-message.ts";
import type { ProcessContext } from "./command.ts";
import { describeFailure, runProgram } from "./program.ts";
import { serviceFileOf } from "./service-file.ts";
import {
  attributedUser,
  confirm,
  EXIT_CODE,
  Interrupted,
  readSecret,
  stopOnSignals,
  userName,
} from "./terminal.ts";

/** How many seconds the runtime uses the address of a name. It reads the variable when it starts; the default is 30. */
const DNS_VARIABLE = "BUN_CONFIG_DNS_TIME_TO_LIVE_SECONDS";
// The launcher sets it. An executable has none, so a server starts itself again in the same process.
if (EXECUTABLE && process.argv[2] === "serve" && processVariables()[DNS_VARIABLE] === undefined) {
  const argv = [process.execPath, ...process.argv.slice(2)];
  process.execve?.(process.execPath, argv, { ...processVariables(), [DNS_VARIABLE]: "1" });
}

// The callback of a write receives an error too. Without a listener it would end the process with a stack.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

/** Resolves when the text has left the process: an earlier exit would truncate a pipe at 64 KiB. */
function write(stream: NodeJS.WriteStream, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

const writeError = (line: string) => write(process.stderr, `petstore: ${line}\n`).catch(() => {});

function isSameFile(...descriptors: readonly number[]): boolean {
  try {
    const files = descriptors.map((descriptor) => fstatSync(descriptor));
    return new Set(files.map(({ dev, ino }) => `${dev} ${ino}`)).size === 1;
  } catch {
    return false;
  }
}

/** The options of the log that the command has opened. */
let logOptions: LogOptions = {};

function createContext(): ProcessContext {
  return {
    variables: processVariables(),
    serviceFile: serviceFileOf(process.execPath),
    clock: createClock(),
    print: (text) => write(process.stdout, text),
    warn: (line) => void writeError(line),
    errorStream: {
      isTerminal: process.stderr.isTTY,
      isStandardOutput: isSameFile(1, 2),
      get columns() {
        return process.stderr.columns || 80;
      },
      write: (text) => void write(process.stderr, text).catch(() => {}),
    },
    readInput: () => Bun.stdin.stream(),
    columns: () => (process.stdout.isTTY ? process.stdout.columns || 80 : undefined),
    openLog: (options) => createLog((logOptions = options)),
    user: attributedUser(userName(), processVariables()),
    readSecret,
    confirm,
    stopSignal: stopOnSignals,
  };
}

async function exitCode(): Promise<number> {
  try {
    await runProgram(process.argv.slice(2), createContext());
    return 0;
  } catch (error) {
    // A reader that closes its end early, as `head` does, is not a failure.
    if (systemErrorField(error, "code") === "EPIPE") return 0;
    if (error instanceof Interrupted) return EXIT_CODE.SIGINT;
    if (isBug(error)) await logUncaught(error);
    const { err, code } = describeFailure(error);
    await writeError(err);
    return code;
  }
}

/** Logs an error with its stack and causes. */
async function logUncaught(error: unknown): Promise<void> {
  let written: Promise<void> | undefined;
  const log = createLog({ ...logOptions, write: (line) => (written = write(process.stderr, line)) });
  log.event("process.uncaught-error", { error });
  await written?.catch(() => {});
}

for (const event of ["uncaughtException", "unhandledRejection"]) {
  process.on(event, async (error: unknown) => {
    if (systemErrorField(error, "code") === "EPIPE") process.exit(0);
    await logUncaught(error);
    process.exit(1);
  });
}

process.exit(await exitCode());
