import type { Random } from "./random.ts";

const NAMES = [
  "name",
  "categoryId",
  "status",
  "petId",
  "id",
  "createdAt",
  "__proto__",
  "constructor",
  "",
] as const;
const SCALARS = [
  "null",
  "true",
  "0",
  "-0",
  "7",
  "7.0",
  "7.5",
  "1e3",
  "1e400",
  "-1e-400",
  "9007199254740993",
  "9223372036854775807",
  "9223372036854775808",
  "-9223372036854775809",
  '""',
  '" "',
  '"Rex"',
  '"available"',
  '"sold"',
  '"completed"',
  '"cancelled"',
  '"\\u0000"',
  '"\\ud800"',
  '"🐶"',
  "NaN",
  "01",
  "+1",
  "'x'",
  "undefined",
] as const;
const VALID = ['{"name":"Rex","categoryId":7}', '{"petId":1}', '{"status":"completed"}'] as const;
const MAX_DEPTH = 4;
const MAX_MEMBERS = 5;

/** A body, a character a byte: often JSON, often with the right names, seldom valid. */
export function fuzzJson(random: Random): string {
  const text = Buffer.from(document(random)).toString("latin1");
  return random.chance(3) ? damage(random, text) : text;
}

function document(random: Random): string {
  if (random.chance(8)) return value(random, 0);
  return random.chance(3) ? random.pick(VALID) : object(random, 0);
}

function value(random: Random, depth: number): string {
  if (depth >= MAX_DEPTH || !random.chance(4)) {
    if (random.chance(20)) return "9".repeat(1 + random.below(400));
    return random.chance(10)
      ? JSON.stringify(random.text(random.below(1_100), 1, 0x2ff))
      : random.pick(SCALARS);
  }
  if (random.chance(2)) return object(random, depth + 1);
  return `[${Array.from({ length: random.below(MAX_MEMBERS) }, () => value(random, depth + 1)).join(",")}]`;
}

function object(random: Random, depth: number): string {
  const members = Array.from({ length: random.below(MAX_MEMBERS) }, () => {
    const name = random.chance(6) ? random.text(random.below(8)) : random.pick(NAMES);
    return `${JSON.stringify(name)}:${value(random, depth + 1)}`;
  });
  return `{${members.join(",")}}`;
}

function damage(random: Random, text: string): string {
  const at = random.below(text.length + 1);
  const inserted = random.text(random.below(3), 0, 255);
  return text.slice(0, at) + inserted + text.slice(at + random.below(3));
}
