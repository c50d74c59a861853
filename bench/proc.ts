import { readFileSync } from "node:fs";
import { outputOf } from "./machine.ts";

const TICKS_PER_SECOND = Number(outputOf(["getconf", "CLK_TCK"]).trim()) || 100;

/** User and system time of a process and all its threads, in seconds. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is the program's name in parentheses and may hold anything; the rest is counted from its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export function residentMb(pid: number): number {
  const kib = /^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kib) * 1_024) / 1e6;
}
