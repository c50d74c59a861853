import { median } from "../trials/harness/statistics.ts";

const ROUNDS = 7;

/** Processor time of one call, in microseconds: medians of rounds that alternate between the sides. */
export function cpuMicros<Side extends string>(
  calls: number,
  sides: Readonly<Record<Side, (call: number) => void>>,
): Record<Side, number> {
  const entries = Object.entries<(call: number) => void>(sides);
  const times = new Map<string, number[]>(entries.map(([name]) => [name, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, work] of entries) {
      const before = process.cpuUsage();
      for (let call = 0; call < calls; call++) work(call);
      const { user, system } = process.cpuUsage(before);
      // The first round warms up.
      if (round > 0) times.get(name)?.push((user + system) / calls);
    }
  }
  return Object.fromEntries([...times].map(([name, each]) => [name, median(each)])) as Record<Side, number>;
}

/** Prints them. */
export function compare(title: string, calls: number, sides: Record<string, (call: number) => void>): void {
  const figures = Object.entries(cpuMicros(calls, sides));
  console.log(`${title}: ${figures.map(([name, micros]) => `${name} ${micros.toFixed(2)} µs`).join(", ")}`);
}
