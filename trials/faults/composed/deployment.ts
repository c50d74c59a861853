import { storePolicy, UNLIMITED } from "../../harness/policy.ts";
import { Fleet } from "../../harness/fleet.ts";
import { temporaryDirectory } from "../../harness/cleanup.ts";
import { adminFlags, runPetstore } from "../../harness/petstore.ts";
import { promote, startPostgres, startStandby, stopWaitingForStandby } from "../../harness/postgres.ts";
import { freezeTree, isRunning, thawTree } from "../../harness/processes.ts";
import type { Server } from "../../harness/server.ts";
import { type Receiver, startReceiver, webhookFlags } from "../../harness/webhook-receiver.ts";
import { DatabaseCertificates } from "./certificates.ts";
import { ServerClocks } from "./clocks.ts";
import type { ClockPeriod, Disturbance } from "./history.ts";
import { type Fault, type Schedule, SERVERS, stepsOf } from "./schedule.ts";

export const TOKEN = "the-token-of-all-servers-of-this-deployment";
/** How long a server is down after a crash, as with a service manager. */
const START_AGAIN_AFTER_MS = 300;
const START_TIMEOUT_MS = 30_000;
/** Servers that start during a restore start one after the other. */
const START_APART_MS = 700;

interface Parts {
  readonly databases: readonly [primary: Server, standby: Server];
  /**
   * The certificates of PostgreSQL. Servers use TLS only if the schedule has a fault of certificates; the same applies
   * to clocks.
   */
  readonly certificates: DatabaseCertificates | undefined;
  readonly clocks: ServerClocks | undefined;
  /** The receiver of the webhook, in a run with a fault that may make a server skip entries. */
  readonly receiver: Receiver | undefined;
}

/** The actions whose entries are delivered to the webhook. */
export const WEBHOOK_EVENTS = ["key.created", "key.disabled", "key.revoked", "operator.created"] as const;

/** Three Petstore servers, PostgreSQL with a standby, synchronous unless the schedule says otherwise. */
export class Deployment {
  readonly disturbances: Disturbance[] = [];
  /** The failures of servers. */
  readonly failures: string[] = [];
  readonly #stoppedServers = new Set<number>();
  #primary: Server;
  #replaced: Server | undefined;
  /** The number of the server that is paused. */
  pausedServer: number | undefined;
  /** When the promotion of a standby was over for which the primary did not wait. */
  mayBeLostUntil: number | undefined;

  private constructor(
    readonly fleet: Fleet,
    readonly storage: readonly string[],
    private readonly parts: Parts,
  ) {
    [this.#primary] = parts.databases;
  }

  static async start({ namesStandbyFirst, faults }: Schedule): Promise<Deployment> {
    const certificates = faults.some(isOfCertificate) ? new DatabaseCertificates() : undefined;
    const clocks = faults.some(isOfClock) ? new ServerClocks() : undefined;
    const tls = certificates && { tls: certificates.valid };
    const primary = await startPostgres(tls);
    const isSynchronous = !faults.some(isOfAsynchronousStandby);
    const standby = await startStandby(primary, { ...tls, isSynchronous });
    const hosts = [primary, standby].map(({ url }) => new URL(url).host);
    if (namesStandbyFirst) hosts.reverse();
    const url = primary.url.replace(new URL(primary.url).host, hosts.join(","));
    const storage = ["--database-url", url + (certificates?.parameters ?? "")];
    const isWebhookTried = clocks !== undefined || !isSynchronous;
    const receiver = isWebhookTried ? startReceiver() : undefined;
    const webhook = receiver ? webhookFlags(receiver, ...WEBHOOK_EVENTS) : [];
    const flags = [...adminFlags(TOKEN), ...webhook];
    const under = clocks && { under: clocks.under };
    // Clients with revoked keys count as clients without a key, all from one address.
    await storePolicy(storage.slice(0, 2), UNLIMITED);
    const fleet = await Fleet.start({ size: SERVERS, storage, flags, ...under });
    const databases = [primary, standby] as const;
    return new Deployment(fleet, storage, { databases, certificates, clocks, receiver });
  }

  get clocks(): readonly ClockPeriod[] {
    return this.parts.clocks?.periods ?? [];
  }

  get receiver(): Receiver | undefined {
    return this.parts.receiver;
  }

  /** The URL of the server that is the primary now. */
  get primaryUrl(): string {
    return this.#primary.url;
  }

  /** Injects the faults at their moments. `now` is the time since the start of the run. */
  async inject(schedule: Schedule, now: () => number): Promise<void> {
    const carriedOut: Promise<void>[] = [];
    // Faults of one part wait for one another.
    const lastOf = new Map<string, Promise<void>>();
    const began = new Map<Fault, number>();
    for (const { fault, index, at, text } of stepsOf(schedule)) {
      await Bun.sleep(Math.max(0, at - now()));
      if (index === 0) began.set(fault, now());
      const parts = partsOf(fault);
      const before = parts.map((part) => lastOf.get(part));
      const carryOut = async () => {
        await Promise.all(before);
        await this.#carryOut(fault, index, now);
        if (index === disturbedUntil(fault) && !isOfClock(fault) && fault.name !== "servers-restored")
          this.disturbances.push({ ...disturbanceOf(fault), from: began.get(fault) ?? 0, until: now() });
      };
      const step = carryOut().catch((error: unknown) => void this.failures.push(`${text}: ${String(error)}`));
      for (const part of parts) lastOf.set(part, step);
      carriedOut.push(step);
    }
    await Promise.all(carriedOut);
  }

  async #carryOut(fault: Fault, index: number, now: () => number): Promise<void> {
    const [first, second, third] = this.#stepsOf(fault, now);
    const step = third === undefined ? [first, second][index % 2] : [first, second, third][index];
    await step?.();
  }

  #stepsOf({ name, server, aheadS }: Fault, now: () => number): readonly (() => unknown)[] {
    const index = server - 1;
    const primary = () => this.#primary;
    const { databases, certificates, clocks } = this.parts;
    const [, standby] = databases;
    const replace = async () => {
      await promote(standby);
      this.#replaced = this.#primary;
      this.#primary = standby;
    };
    const pid = () => this.fleet.servers[index]?.pid ?? 0;
    const breakCertificate = (what: "expired" | "untrusted") => [
      () => certificates?.break(databases, primary(), what),
      () => certificates?.repair(databases, primary()),
    ];
    const setClocks = (indexes: readonly number[]) => {
      const set = (to: number) => () =>
        Promise.all(indexes.map((each) => clocks?.set(this.fleet, each, to, now)));
      return [set(aheadS), set(0)];
    };
    switch (name) {
      case "server-killed":
        return [() => this.#stopServer(index, "SIGKILL"), () => this.#startServer(index)];
      case "server-frozen":
        return [() => freezeTree(pid()), () => thawTree(pid())];
      case "server-paused":
        return [
          () => {
            freezeTree(pid());
            this.pausedServer = server;
          },
          () => {
            this.pausedServer = undefined;
            thawTree(pid());
          },
        ];
      case "server-restarted":
        return [() => this.#stopServer(index, "SIGTERM").then(() => this.#startServer(index))];
      case "servers-restored":
        return [() => this.#restore(now)];
      case "primary-frozen":
      case "primary-flapping":
        return freezeAndThaw(primary);
      case "primary-killed":
        return killAndStart(primary);
      case "standby-frozen":
        return freezeAndThaw(() => standby);
      case "standby-killed":
        return killAndStart(() => standby);
      case "promotion-killed":
        return [() => primary().kill(), replace, () => this.#startReplaced()];
      case "promotion-asynchronous":
        return [
          () => primary().kill(),
          () => replace().then(() => (this.mayBeLostUntil = now())),
          () => this.#startReplaced(),
        ];
      case "promotion-frozen":
        return [() => primary().freeze(), replace, () => this.#replaced?.thaw()];
      case "certificate-expired":
        return breakCertificate("expired");
      case "certificate-untrusted":
        return breakCertificate("untrusted");
      case "clock-set":
      case "clock-behind":
        return setClocks([index]);
      case "clocks-set":
        return setClocks([...this.fleet.ports.keys()]);
    }
  }

  /** Starts the replaced primary, which accepts writes and waits for no standby, as if it were still the primary. */
  async #startReplaced(): Promise<void> {
    if (this.#replaced === undefined) return;
    await this.#replaced.restart();
    await stopWaitingForStandby(this.#replaced);
  }

  /**
   * Stops all servers, makes a backup and restores it, and starts the servers meanwhile. Whether the restore succeeds
   * depends on who comes first, and on other faults.
   */
  async #restore(now: () => number): Promise<void> {
    const from = now();
    const servers = [...this.fleet.ports.keys()];
    await Promise.all(servers.map((index) => this.#stopServer(index, "SIGTERM")));
    const directory = temporaryDirectory("backups");
    const storage = [...this.storage, "--data", temporaryDirectory("restore")];
    const { code } = await runPetstore("backup", directory, ...storage);
    const restoring = code === 0 ? runPetstore("restore", directory, "--replace", ...storage) : undefined;
    const starting = servers.map(async (index) => {
      await Bun.sleep(index * START_APART_MS);
      await this.#startServer(index);
    });
    await Promise.all([restoring, ...starting]);
    const [what, until] = ["is restored", now()];
    this.disturbances.push({ part: "restore", what, from, until });
    for (const index of servers)
      this.disturbances.push({ part: "server", number: index + 1, what, from, until });
  }

  async #stopServer(index: number, signal: NodeJS.Signals): Promise<void> {
    this.checkRunning();
    this.#stoppedServers.add(index);
    const code = await this.fleet.stopServer(index, signal);
    if (signal === "SIGTERM" && code !== 0) this.failures.push(`server ${index + 1} ended with ${code}`);
  }

  async #startServer(index: number): Promise<void> {
    const deadline = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      try {
        await this.fleet.startServer(index);
        this.#stoppedServers.delete(index);
        return;
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
      await Bun.sleep(START_AGAIN_AFTER_MS);
    }
  }

  /** Records servers that have ended by themselves. */
  checkRunning(): void {
    for (const [index, pid] of this.fleet.pids.entries()) {
      if (isRunning(pid) || this.#stoppedServers.has(index)) continue;
      this.#stoppedServers.add(index);
      this.failures.push(`server ${index + 1} has ended by itself`);
    }
  }

  async stop(): Promise<void> {
    this.checkRunning();
    await Promise.all(this.fleet.servers.map((_, index) => this.#stopServer(index, "SIGTERM")));
    await Promise.all(this.parts.databases.map((database) => database.discard()));
    await this.receiver?.close();
  }
}

const freezeAndThaw = (server: () => Server) => [() => server().freeze(), () => server().thaw()];

const killAndStart = (server: () => Server) => [() => server().kill(), () => server().restart()];

const isOfCertificate = ({ name }: Fault) => name.startsWith("certificate");
const isOfAsynchronousStandby = ({ name }: Fault) => name === "promotion-asynchronous";
const isOfClock = ({ name }: Fault) => name.startsWith("clock");

/** The parts that a fault affects. Both databases are one part, because a promotion takes a while. */
function partsOf({ name, server }: Fault): readonly string[] {
  if (name === "servers-restored") return Array.from({ length: SERVERS }, (_, i) => `server ${i + 1}`);
  if (name.startsWith("server")) return [`server ${server}`];
  if (name.startsWith("clock")) return ["clocks"];
  return ["databases"];
}

/** When a fault ends: the step after which the servers can work as usual. */
function disturbedUntil({ name, moments }: Fault): number {
  return name.startsWith("promotion") ? 1 : moments.length - 1;
}

function disturbanceOf({ name, server }: Fault): Pick<Disturbance, "part" | "number" | "what"> {
  const [part = "", what = ""] = name.split("-");
  switch (part) {
    case "server":
      return { part, number: server, what };
    case "primary":
    case "standby":
    case "certificate":
      return { part, what };
    default:
      return { part: "promotion", what };
  }
}
