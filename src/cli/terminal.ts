import { readFileSync } from "node:fs";
import type { Variables } from "../config/parse-options.ts";
import { scheduler } from "../runtime/scheduler.ts";

/** Every secret is shorter, even with what is pasted along with it. */
const MAX_LENGTH = 4_096;
const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
/** Terminals send either of them. */
const BACKSPACE = "\u0008\u007f";

/** Reads one line of standard input. A terminal does not show it, and the prompt goes to standard error. */
export async function readSecret(prompt: string): Promise<string> {
  const { stdin } = process;
  if (!stdin.isTTY) return readLine(stdin);
  // The mode is set before the prompt, so that nothing that is typed after it is shown.
  stdin.setRawMode(true);
  try {
    process.stderr.write(prompt);
    return await readLine(stdin);
  } finally {
    stdin.setRawMode(false);
    process.stderr.write("\n");
  }
}

/** Asks at the terminal. Everything but y and yes means no. */
export async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return true;
  process.stderr.write(`${question} [y/N] `);
  return /^y(?:es)?$/i.test((await readLine(process.stdin)).trim());
}

/** A terminal in raw mode passes on the keys that end or correct a line. */
async function readLine(input: AsyncIterable<string | Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let line = "";
  for await (const chunk of input) {
    const text = typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    for (const character of text) {
      if (character === "\n" || character === "\r" || character === CTRL_D) return line;
      if (character === CTRL_C) throw new Interrupted();
      if (BACKSPACE.includes(character)) line = line.slice(0, -1);
      else if (line.length < MAX_LENGTH) line += character;
    }
  }
  return line;
}

/** The user pressed Ctrl-C. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
}

export const EXIT_CODE = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
export type StopSignal = keyof typeof EXIT_CODE;

/** Ctrl-C reaches npm and the server, and npm forwards it: the server receives it twice. */
const DUPLICATE_MS = 300;
const STOP_TIMEOUT_MS = 9_500;
const TOO_LATE = "requests in progress did not finish in time; stopping without them";

/**
 * Resolves with the first signal. A second signal exits at once, and so does the timeout after the server has drained
 * for `drainDelayMs`. `status` is /proc/self/status on Linux.
 */
export function stopOnSignals(
  drainDelayMs: number,
  status = readIfPresent("/proc/self/status"),
): Promise<StopSignal> {
  return new Promise((resolve) => {
    let firstAt: number | undefined;
    const stop = (signal: StopSignal) => {
      if (firstAt !== undefined) {
        if (performance.now() - firstAt >= DUPLICATE_MS) process.exit(EXIT_CODE[signal]);
        return;
      }
      firstAt = performance.now();
      scheduler
        .setTimeout(() => {
          process.stderr.write(`petstore: ${TOO_LATE}\n`);
          process.exit(1);
        }, drainDelayMs + STOP_TIMEOUT_MS)
        .unref();
      resolve(signal);
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
    // A listener would make the process react to SIGHUP, which `nohup` ignores.
    if (!isHangupIgnored(status)) process.on("SIGHUP", stop);
  });
}

/** Whether `nohup` has started the process. SigIgn is a hexadecimal bit set, and SIGHUP is its first bit. */
function isHangupIgnored(status: string): boolean {
  const [, lastDigit = "0"] = /^SigIgn:\s*[\da-f]*([\da-f])$/m.exec(status) ?? [];
  return Number.parseInt(lastDigit, 16) % 2 === 1;
}

/** The line of a user in the file of users: `ann:x:1000:1000:Ann:/home/ann:/bin/sh`. */
const USER = /^(?<name>[^:]+):[^:]*:(?<uid>\d+):/;

/**
 * Returns the user who runs this process, by the number that the kernel knows. Bun's `userInfo` returns the variable
 * USER, which anybody can set and cron does not. A user without an entry, as in a container, is `user 1000`.
 */
export function userName(uid = process.getuid?.(), file = "/etc/passwd"): string | undefined {
  if (uid === undefined) return undefined;
  for (const line of readIfPresent(file).split("\n")) {
    const user = USER.exec(line)?.groups;
    if (user && Number(user["uid"]) === uid) return user["name"];
  }
  return `user ${uid}`;
}

/** The user of the process and, with sudo, who that is: `root (ann)`. sudo's variable adds a name and replaces none. */
export function attributedUser(
  user: string | undefined,
  { SUDO_USER: caller = "" }: Variables,
): string | undefined {
  return user === undefined || caller === user || !/^[\w.][\w.-]{0,31}$/.test(caller)
    ? user
    : `${user} (${caller})`;
}

/** Returns an empty text if the file cannot be read, as /proc on some systems. */
export function readIfPresent(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
