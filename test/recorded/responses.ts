import { join } from "node:path";
import type { Responses } from "./play.ts";

export const RECORD = join(import.meta.dir, "responses.txt");

const TITLE = /^=== (.*) ===\n/gm;

export function write(responses: Responses): string {
  return [...responses].map(([name, text]) => `=== ${name} ===\n${text}\n`).join("\n");
}

export function read(record: string): Responses {
  const [, ...parts] = record.split(TITLE);
  const responses: Responses = new Map();
  for (let i = 0; i < parts.length; i += 2)
    responses.set(parts[i] ?? "", (parts[i + 1] ?? "").replace(/\n\n?$/, ""));
  return responses;
}
