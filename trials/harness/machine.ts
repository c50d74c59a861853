import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, release, totalmem } from "node:os";

export type Machine = Readonly<ReturnType<typeof describeMachine>>;

export function describeMachine() {
  return {
    cpu: cpuModel(),
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    architecture: process.arch,
    load: readFileSync("/proc/loadavg", "utf8").split(" ").slice(0, 3).join(" "),
  };
}

export function machineText({ cores, cpu, architecture, memoryGb, kernel }: Machine): string {
  return `${cores} cores of ${cpu} (${architecture}), ${memoryGb} GB, Linux ${kernel}`;
}

/** Describes the machine and its load average, for notes on figures. */
export function machineNow(): string {
  const machine = describeMachine();
  return `${machineText(machine)}, Bun ${Bun.version}, load average ${machine.load}`;
}

/** The name of the processor. ARM kernels do not report it; lscpu knows most of them. */
function cpuModel(): string {
  const named = cpus()[0]?.model ?? "";
  if (named !== "" && named !== "unknown") return named;
  const model = /^Model name:\s*(.+)$/m.exec(outputOf(["lscpu"]))?.[1];
  return model === undefined || model === "-" ? "unknown" : model;
}

export interface Cores {
  readonly server: string;
  readonly load: string;
}

/** Chooses one core for the server and another for the load, from those that this process may use. */
export function chooseCores(): Cores | undefined {
  const status = readFileSync("/proc/self/status", "utf8");
  const allowed = coresIn(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1]);
  const [server] = allowed;
  if (server === undefined || Bun.which("taskset") === null) return undefined;
  const others = allowed.filter((core) => core !== server);
  const siblings = siblingsOf(server);
  const load = others.find((core) => !siblings.includes(core)) ?? others[0];
  return load === undefined ? undefined : { server: String(server), load: String(load) };
}

/** The threads of one physical core, which share its time. */
function siblingsOf(core: number): number[] {
  const path = `/sys/devices/system/cpu/cpu${core}/topology/thread_siblings_list`;
  return existsSync(path) ? coresIn(readFileSync(path, "utf8").trim()) : [];
}

/** Parses lists such as 0-3,8. */
function coresIn(list = ""): number[] {
  return list.split(",").flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split("-").map(Number);
    return Number.isNaN(first) ? [] : Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

export function pinThisProcessTo(core: string): void {
  Bun.spawnSync(["taskset", "-acp", core, String(process.pid)]);
}

/** Waits until the disk has everything that was written, so that a measurement does not wait for it. */
export async function flushDisk(): Promise<void> {
  await Bun.spawn(["sync"]).exited;
}

/** The output of a command on both streams; empty if the command does not exist. */
export function outputOf(command: string[]): string {
  const [program = ""] = command;
  if (Bun.which(program) === null) return "";
  const { stdout, stderr } = Bun.spawnSync(command);
  return stdout.toString() + stderr.toString();
}
