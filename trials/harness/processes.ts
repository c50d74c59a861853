import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";

/** The state, the parent and other facts from /proc. The program's name before them may contain parentheses. */
function statOf(pid: number | string): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return [];
  }
}

/**
 * Whether a process is running. It is false for a process that has ended and whose parent has not collected its exit
 * code (state Z).
 */
export function isRunning(pid: number): boolean {
  const [state = "Z"] = statOf(pid);
  return state !== "Z";
}

export function processTree(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (/^\d+$/.test(name)) parents.set(Number(name), Number(statOf(name)[1]));
  }
  const tree = [pid];
  for (const member of tree) {
    for (const [child, parent] of parents) if (parent === member) tree.push(child);
  }
  return tree;
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process does not exist any more.
  }
}

const STOP_TIMEOUT_MS = 1_000;

/**
 * Stops a process and its children. Each process is stopped before its children are listed, so that it cannot start
 * another one meanwhile. It stops when the scheduler next runs it, which may be some time after the signal.
 */
export function freezeTree(pid: number): number[] {
  signal(pid, "SIGSTOP");
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while (isRunning(pid) && statOf(pid)[0] !== "T" && performance.now() < deadline);
  const tree = processTree(pid);
  for (const member of tree) signal(member, "SIGSTOP");
  return tree;
}

export function thawTree(pid: number): void {
  for (const member of processTree(pid)) signal(member, "SIGCONT");
}

/** Kills a process and its children. Resolves when all of them have ended, and their ports and files are free. */
export async function killTree(pid: number): Promise<void> {
  const tree = freezeTree(pid);
  for (const member of tree) signal(member, "SIGKILL");
  while (tree.some(isRunning)) await Bun.sleep(1);
}

/** The unit of times in /proc, on all architectures that Bun runs on. */
const TICKS_PER_SECOND = 100;

export function cpuSeconds(pid: number): number {
  const stat = statOf(pid);
  return (Number(stat[11]) + Number(stat[12])) / TICKS_PER_SECOND;
}

export const cpuSecondsOfTrees = (pids: readonly number[]) =>
  pids.flatMap(processTree).reduce((sum, pid) => sum + cpuSeconds(pid), 0);

/** The processor time of each thread of processes, in milliseconds: to the microsecond while the thread is asleep. */
export function cpuMsOfThreads(pids: readonly number[]): ReadonlyMap<string, number> {
  return new Map(pids.flatMap(threadsOf).map((path) => [path, runMs(path)]));
}

/** The processor time since then, without that of threads which have ended. */
export function cpuMsSince(before: ReadonlyMap<string, number>, pids: readonly number[]): number {
  return [...cpuMsOfThreads(pids)].reduce(
    (sum, [path, ms]) => sum + Math.max(0, ms - (before.get(path) ?? 0)),
    0,
  );
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}`);
  } catch {
    return [];
  }
}

function runMs(path: string): number {
  try {
    return Number(readFileSync(`${path}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  } catch {
    // The thread has ended.
    return 0;
  }
}

/** The bytes that a process has read from files. */
export function bytesRead(pid: number): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
}

/**
 * Sets the priority of a process with a session of its own, and of its children: from -20, the highest, to 19. Where
 * Linux divides the time among sessions first (autogroup), it sets the priority of the sessions too. Only root can
 * raise it; for others nothing changes.
 */
export function setTreePriority(pid: number, niceness: number): void {
  for (const member of processTree(pid)) {
    try {
      setPriority(member, niceness);
      writeFileSync(`/proc/${member}/autogroup`, `${niceness}`);
    } catch {
      // The user is not root, the kernel has no autogroup, or the process has ended.
    }
  }
}

/**
 * How long the main thread of a process has been ready to run without running, because other processes used the cores.
 */
export function cpuWaitMs(pid: number): number {
  if (!isRunning(pid)) return Number.NaN;
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}

export const residentMb = (pid: number) => memoryMb(pid, "VmRSS");

/** The highest memory so far. The resource usage of a child is unsuitable: it begins with its parent's memory. */
export const peakMb = (pid: number) => memoryMb(pid, "VmHWM");

/** The memory of a process; NaN if it has ended. */
function memoryMb(pid: number, field: string): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const kib = new RegExp(`^${field}:\\s*(\\d+) kB`, "m").exec(status)?.[1];
    return (Number(kib) * 1_024) / 1e6;
  } catch {
    return Number.NaN;
  }
}
