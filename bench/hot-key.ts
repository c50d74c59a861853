/* Measures what other keys wait while one key is much used, on several servers that are far from PostgreSQL. */

import { Fleet } from "../trials/harness/fleet.ts";
import { median, ratioOf } from "../trials/harness/statistics.ts";
import { startStallingProxy } from "../trials/harness/stalling-proxy.ts";
import { formatFigure, type Table, tableOf } from "../trials/harness/table.ts";
import { runWrk } from "../trials/harness/wrk.ts";
import { PETSTORE } from "../trials/harness/petstore.ts";
import { addKey, partsOf, PROXY_FLAGS, startFilledStores } from "./shared.ts";
import { requestValues, workloadOf } from "./workloads.ts";

const AWAY_MS = 2;
const KEYS = 24;
const SECONDS = 3;
/** So many connections to each server, which pause so that the processors are never the bottleneck. */
const MEASURED = { connections: 4, delayMs: 20 };
const BESIDE = { connections: 16, delayMs: 20 };

interface HotKeyOptions {
  readonly servers: number;
  readonly pets: number;
  readonly rounds: number;
}

/** The same requests beside those that are measured have one key, or as many as there are. */
export async function measureHotKey({ servers, pets, rounds }: HotKeyOptions): Promise<Table> {
  const { postgres, storage, key } = await startFilledStores(pets);
  const keys = [key];
  while (keys.length < KEYS) keys.push(await addKey(PETSTORE, storage));
  await using proxy = await startStallingProxy(new URL(postgres.url));
  const fleet = await Fleet.start({
    size: servers,
    storage: ["--database-url", proxy.url],
    flags: PROXY_FLAGS,
  });
  proxy.delay(AWAY_MS);
  const source = { keys: { unlimited: key, exhausted: "", unknown: "" }, values: requestValues(pets) };
  const workload = workloadOf("get-one");
  const load = (port: number, chosen: readonly string[], { connections, delayMs }: typeof BESIDE) =>
    runWrk({ port, connections, delayMs, seconds: SECONDS, parts: partsOf(workload, source, chosen) });
  const others = keys.slice(0, KEYS / 2);
  const measure = async (beside: readonly string[]) => {
    const loads = fleet.ports.flatMap((port) => [load(port, others, MEASURED), load(port, beside, BESIDE)]);
    const figures = (await Promise.all(loads)).filter((_, i) => i % 2 === 0);
    return median(figures.map(({ p50 }) => p50 / 1_000));
  };
  const [hot, spread]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    const [withHot, without] = [await measure(keys.slice(-1)), await measure(keys.slice(KEYS / 2))];
    // The first round connects and compiles.
    if (round === 0) continue;
    hot.push(withHot);
    spread.push(without);
  }
  await fleet.stop();
  await postgres.stop();
  const title = `One key that is much used: ${servers} servers, PostgreSQL ${AWAY_MS} ms away, p50 of other keys in ms`;
  return tableOf(title, [{ hot, spread }], {
    "": () => "get",
    "the same load on many keys": ({ spread: each }) => formatFigure(median(each)),
    "with one": ({ hot: each }) => formatFigure(median(each)),
    "ratio, at most 1.6": (row) => ratioOf(row.hot, row.spread).median.toFixed(2),
  });
}
