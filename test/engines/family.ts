import { readdirSync, readFileSync } from "node:fs";

/** A process and everything it started, as the kernel lists them; `ps` is not on every machine. */
export function familyOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (/^\d+$/.test(name)) parents.set(Number(name), parentOf(name));
  }
  const family = [pid];
  for (const member of family) {
    for (const [child, parent] of parents) if (parent === member) family.push(child);
  }
  return family;
}

function parentOf(pid: string): number {
  return Number(fieldsOf(pid)[1]);
}

/** A process that has ended and whose parent has not yet asked how (Z) is over. */
export function isRunning(pid: number): boolean {
  const [state = "Z"] = fieldsOf(`${pid}`);
  return state !== "Z";
}

/** State, parent and so on. The name in front of them may hold anything, parentheses too. */
function fieldsOf(pid: string): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return [];
  }
}

/** False when there is no such process any more. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

const STOPPED_WITHIN_MS = 1_000;

/**
 * Stops a process before its children are listed, so that it cannot start another one unnoticed. It stops when it is
 * next given the processor, which may be a while after the signal was sent.
 */
export function freezeFamily(pid: number): number[] {
  signal(pid, "SIGSTOP");
  const deadline = performance.now() + STOPPED_WITHIN_MS;
  while (isRunning(pid) && fieldsOf(`${pid}`)[0] !== "T" && performance.now() < deadline);
  const family = familyOf(pid);
  for (const member of family) signal(member, "SIGSTOP");
  return family;
}

export function thawFamily(pid: number): void {
  for (const member of familyOf(pid)) signal(member, "SIGCONT");
}

/** SIGKILL reaches the stopped as well. Done when all are gone: what one of them still holds is not free for others. */
export async function killFamily(pid: number): Promise<void> {
  const family = freezeFamily(pid);
  for (const member of family) signal(member, "SIGKILL");
  while (family.some(isRunning)) await Bun.sleep(1);
}
