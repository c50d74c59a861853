/* Runs `npx bun trials/faults/patroni.ts`; its --help describes the options. */

import { storePolicy, UNLIMITED } from "../harness/policy.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { integer, runCommand } from "../harness/command-line.ts";
import { Fleet } from "../harness/fleet.ts";
import { PatroniCluster } from "../harness/patroni.ts";
import { adminFlags } from "../harness/petstore.ts";
import { isRunning } from "../harness/processes.ts";
import { ETCD, HAPROXY, PATRONI, POSTGRES, provide } from "../harness/programs.ts";
import { type Outcome, runTrials } from "../harness/trials.ts";
import { TOKEN } from "./composed/deployment.ts";
import type { Disturbance } from "./composed/history.ts";
import type { Played } from "./composed/played.ts";
import { outcomeOf, play } from "./composed/run.ts";
import { SERVERS } from "./composed/schedule.ts";

const HELP = `Usage: npx bun trials/faults/patroni.ts [OPTIONS]

Runs PostgreSQL as operators do: etcd and three servers with Patroni, with the configuration in deploy/patroni. The leader
is switched over and killed again and again, also after its synchronous standby was cut off, while clients and operators
use three servers of Petstore, first with all PostgreSQL servers in the URL, then through HAProxy. Everything that they
did is judged as by npm run faults -- --compose: nothing acknowledged is lost, limits hold, and afterwards no server uses
another than the leader. Needs the packages patroni, etcd-server, haproxy and postgresql. Takes some thirty minutes. Exits with 1 if a promise is broken.

  --faults N    Switchovers, and as many kills of both kinds, each way (default: 5)
  --help        Show this
`;

const BEFORE_MS = 4_000;
const LEAVES_WITHIN_MS = 2_000;
const WAYS = ["all servers in the URL", "through HAProxy"] as const;

interface Trial {
  readonly title: string;
  readonly way: (typeof WAYS)[number];
  readonly fault: "switchover" | "killed" | "killed without its standby";
  readonly seed: number;
}

function trialsOf(faults: number): Trial[] {
  const rounds = WAYS.flatMap((way) => Array.from({ length: faults }, () => way));
  return rounds.flatMap((way, i): Trial[] => [
    { way, seed: 3 * i, fault: "switchover", title: `${way}: the leader is switched over` },
    { way, seed: 3 * i + 1, fault: "killed", title: `${way}: the leader is killed` },
    {
      way,
      seed: 3 * i + 2,
      fault: "killed without its standby",
      title: `${way}: the standby is cut off, the leader is killed, and the standby is back`,
    },
  ]);
}

/** Petstore on the cluster. Each server has a directory of its own, as on a machine of its own. */
class Deployment implements Played {
  disturbances: Disturbance[] = [];
  failures: string[] = [];

  private constructor(
    readonly fleet: Fleet,
    readonly storage: readonly string[],
    private readonly database: string,
    private readonly cluster: PatroniCluster,
  ) {}

  static async start(cluster: PatroniCluster, { way, seed }: Trial): Promise<Deployment> {
    const database = `petstore_${seed}`;
    await cluster.createDatabase(database);
    const url = cluster.url(way === "through HAProxy" ? "proxy" : "all servers", database);
    const flags = adminFlags(TOKEN);
    await storePolicy(["--database-url", url], UNLIMITED);
    const fleet = await Fleet.start({ size: SERVERS, storage: ["--database-url", url], flags });
    const storage = ["--database-url", url, "--data", temporaryDirectory("data")];
    return new Deployment(fleet, storage, database, cluster);
  }

  get primaryUrl(): string {
    return this.cluster.leader.url({ database: this.database });
  }

  checkRunning(): void {
    for (const [index, pid] of this.fleet.pids.entries())
      if (!isRunning(pid)) this.failures.push(`server ${index + 1} has ended by itself`);
  }

  async run({ fault, seed }: Trial): Promise<Outcome<never>> {
    this.disturbances = [];
    this.failures = [];
    const history = await play(this, { seed, inject: (now) => this.#inject(fault, now) });
    return outcomeOf(history);
  }

  async #inject(fault: Trial["fault"], now: () => number): Promise<void> {
    const { cluster } = this;
    await Bun.sleep(BEFORE_MS);
    const from = now();
    const before = cluster.leader;
    // Commits wait until Patroni has chosen another standby.
    const cutOff = fault === "killed without its standby" ? await cluster.syncStandby() : undefined;
    if (cutOff) {
      cutOff.freeze();
      await cluster.syncStandby(cutOff);
      await Bun.sleep(BEFORE_MS);
    }
    if (fault === "switchover") await cluster.switchOver();
    else {
      await before.kill();
      await cluster.untilReplaced(before);
      cutOff?.thaw();
    }
    this.disturbances.push({ part: "promotion", what: fault, from, until: now() });
    await Bun.sleep(LEAVES_WITHIN_MS);
    await this.#expectOnlyOnLeader();
    if (fault !== "switchover") before.start();
    await cluster.untilComplete();
    await this.#expectOnlyOnLeader();
  }

  async #expectOnlyOnLeader(): Promise<void> {
    for (const node of this.cluster.nodes) {
      const connections = (await node.connections()) ?? 0;
      const isLeader = node === this.cluster.leader;
      if (isLeader ? connections < SERVERS : connections > 0)
        this.failures.push(`${node.name}${isLeader ? ", the leader," : ""} has ${connections} connections`);
    }
  }

  async stop(): Promise<void> {
    await this.fleet.stop();
  }
}

/** Each switchover and the kills after it are on a database of their own, so that lists stay short. */
async function runAll(cluster: PatroniCluster, faults: number): Promise<number> {
  let deployment: Deployment | undefined;
  const code = await runTrials({
    trials: trialsOf(faults),
    async run(trial) {
      if (trial.fault === "switchover") {
        await deployment?.stop();
        deployment = undefined;
        deployment = await Deployment.start(cluster, trial);
      }
      if (deployment === undefined) throw new Error("the servers did not start");
      return await deployment.run(trial);
    },
  });
  await deployment?.stop();
  return code;
}

await runCommand({
  name: "faults/patroni",
  help: HELP,
  flags: { faults: integer(5, 100) },
  maxMinutes: 60,
  async main({ faults }) {
    const missing = provide([POSTGRES, PATRONI, ETCD, HAPROXY]);
    if (missing.length > 0) throw new Error(missing.join("\n"));
    const cluster = await PatroniCluster.start();
    return await runAll(cluster, faults).finally(() => cluster.discard());
  },
});
