import { createHash } from "node:crypto";
import decide from "./decide.lua" with { type: "text" };
import type { Client } from "./connection.ts";
import readUsage from "./read-usage.lua" with { type: "text" };
import unban from "./unban.lua" with { type: "text" };
import usage from "./usage.lua" with { type: "text" };

export interface Script {
  readonly text: string;
  readonly sha: string;
}

export const ADMIT = script(decide);
export const UNBAN = script(unban);
export const READ_USAGE = script(readUsage);

function script(body: string): Script {
  const text = usage + body;
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

export interface Call {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/**
 * A server that was restarted, promoted or flushed of scripts does not know the script; a node of a cluster may have
 * handed the slot on. They say so before they do anything, so asking again, with the text, counts nothing twice.
 */
const NOTHING_DONE = /^(?:NOSCRIPT|MOVED|ASK) /;

export async function run(client: Client, { text, sha }: Script, { keys, args }: Call): Promise<unknown> {
  try {
    return await client.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && NOTHING_DONE.test(error.message))) throw error;
    return client.eval(text, keys.length, ...keys, ...args);
  }
}
