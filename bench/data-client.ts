import { HttpConnection } from "../harness/http-connection.ts";
import { quantile } from "../harness/statistics.ts";

/** Every 20 ms a page, and every 100 ms a new pet, each on a connection of its own. */
const READ_EVERY_MS = 20;
const WRITES_EVERY_READS = 5;

export interface ClientFigures {
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  /** Statuses other than 200 and 201. */
  readonly failures: readonly number[];
}

/** Uses a server until the work is done, and returns how long each response took, in milliseconds. */
export async function measureClient(
  url: string,
  key: string,
  work: Promise<unknown>,
): Promise<ClientFigures> {
  const port = Number(new URL(url).port);
  const authorization = ["Authorization", `Bearer ${key}`] as const;
  const [reading, writing] = [await HttpConnection.open(port), await HttpConnection.open(port)];
  const figures = { reads: [] as number[], writes: [] as number[], failures: [] as number[] };
  const read = async () => {
    const startedAt = performance.now();
    const { status } = await reading.send({ path: "/v1/pets", headers: [authorization] });
    figures.reads.push(performance.now() - startedAt);
    if (status !== 200) figures.failures.push(status);
  };
  const write = async () => {
    const startedAt = performance.now();
    const headers = [authorization, ["Content-Type", "application/json"] as const];
    const body = '{"name":"Rex","categoryId":7}';
    const { status } = await writing.send({ method: "POST", path: "/v1/pets", headers, body });
    figures.writes.push(performance.now() - startedAt);
    if (status !== 201) figures.failures.push(status);
  };
  const state = { isDone: false };
  void work.finally(() => (state.isDone = true)).catch(() => {});
  let pendingRead = Promise.resolve();
  let pendingWrite = Promise.resolve();
  const startedAt = performance.now();
  for (let number = 0; !state.isDone; number++) {
    await Bun.sleep(Math.max(0, startedAt + number * READ_EVERY_MS - performance.now()));
    // One connection carries one request at a time.
    await pendingRead;
    pendingRead = read();
    if (number % WRITES_EVERY_READS !== 0) continue;
    await pendingWrite;
    pendingWrite = write();
  }
  await Promise.all([pendingRead, pendingWrite]);
  reading.close();
  writing.close();
  await work;
  return figures;
}

export function p99Of({ reads, writes }: ClientFigures): { reads: number; writes: number } {
  return { reads: quantile(reads, 0.99), writes: quantile(writes, 0.99) };
}
