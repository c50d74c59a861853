import { postgresUrl } from "../engines/postgres.ts";
import { valkeyUrl } from "../engines/valkey.ts";
import { type Instance, startInstance } from "../instances/instance.ts";
import { command } from "../process.ts";
import { listeningPorts } from "./ports.ts";

export const PUBLIC_URL = "https://api.example.com/v1";

/** Instances on one PostgreSQL and one Valkey, told what they need to know behind a balancer. */
export interface Fleet {
  readonly ports: readonly number[];
  /** A key with limits that nobody reaches. */
  readonly key: string;
  newKey(perMinute: number): Promise<string>;
  /** SIGTERM; over when the process is. */
  stop(index: number): Promise<void>;
  /** At the same address as before. */
  start(index: number): Promise<void>;
  end(): Promise<void>;
}

const FLAGS = [
  "--public-url",
  PUBLIC_URL,
  // The balancer's address and no other: clients in these tests come from elsewhere in 127.0.0.0/8.
  "--trust-proxy",
  "127.0.0.1",
  "--limits-timeout",
  "1s",
];

export async function startFleet(size: number): Promise<Fleet> {
  const place = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
  const launch = (port: number) => startInstance([...place, ...FLAGS, "--port", `${port}`]);
  const ports = listeningPorts(size);
  const instances: (Instance | undefined)[] = await Promise.all(ports.map(launch));
  const stop = async (index: number) => {
    await instances[index]?.stop();
    instances[index] = undefined;
  };

  async function newKey(perMinute: number): Promise<string> {
    const limits = ["--plan", "enterprise", "--per-minute", `${perMinute}`, "--per-day", "1000000000"];
    const { out, err } = await command("keys", "create", "--name", "test", ...limits, "--json", ...place);
    if (out === "") throw new Error(err);
    const { key }: { key: string } = JSON.parse(out);
    return key;
  }

  return {
    ports,
    key: await newKey(1_000_000_000),
    newKey,
    stop,
    async start(index) {
      instances[index] = await launch(ports[index] ?? 0);
    },
    async end() {
      await Promise.all(instances.map((_, index) => stop(index)));
    },
  };
}
