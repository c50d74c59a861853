import { median } from "../trials/harness/statistics.ts";

const ROUNDS = 7;

/** Prints the processor time of one call, in microseconds: the medians of rounds that alternate between the sides. */
export function compare(title: string, sides: Record<string, (call: number) => void>, calls = 20_000): void {
  const times = Object.entries(sides).map(([name, work]) => ({ name, work, micros: [] as number[] }));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { work, micros } of times) {
      const before = process.cpuUsage();
      for (let call = 0; call < calls; call++) work(call);
      const { user, system } = process.cpuUsage(before);
      // The first round is a warm-up.
      if (round > 0) micros.push((user + system) / calls);
    }
  }
  const figures = times.map(({ name, micros }) => `${name} ${median(micros).toFixed(2)} µs`);
  console.log(`${title}: ${figures.join(", ")}`);
}
