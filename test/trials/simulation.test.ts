import { describe, expect, test } from "bun:test";
import { runSimulation, SIMULATION_NAMES } from "../../trials/simulation/simulate.ts";
import { Process, Remote, World } from "../../trials/simulation/world.ts";

/** `npm run simulate` plays more of them. */
const SEEDS = 600;

describe(`${SEEDS} seeds break no promise`, () => {
  test.each(SIMULATION_NAMES)(
    "%s",
    (name) => {
      for (let seed = 1; seed <= SEEDS / SIMULATION_NAMES.length; seed++)
        expect(runSimulation(name, seed)).toBeUndefined();
    },
    60_000,
  );
});

test("a key that a server has accepted is not rejected by a lookup that began before", () => {
  expect(runSimulation("changes", 2_005_119_859)).toBeUndefined();
});

describe("a simulated world", () => {
  test("gives the same history for the same seed, and another for another", () => {
    const play = (seed: number) => {
      const world = new World(seed);
      const process = new Process(world, "server");
      for (let i = 0; i < 10; i++) process.setTimeout(() => world.note(i), process.random() * 10);
      world.run(20);
      return world.history;
    };
    expect(play(1)).toEqual(play(1));
    expect(play(1)).not.toEqual(play(2));
  });

  test("promises are resolved before the next event; a blocked process is late, a killed one does nothing", () => {
    const world = new World(1);
    const [one, other] = [new Process(world, "one"), new Process(world, "other")];
    void one.sleep(10).then(() => world.note("one"));
    void other.sleep(5).then(() => world.note("other"));
    world.schedule(1, () => one.block(100));
    world.schedule(2, () => other.kill());
    world.run(1_000);
    expect(world.history).toEqual([[101, "one"]]);
  });

  test("a call whose reply is lost ends with a timeout, and was carried out", () => {
    const world = new World(1);
    const server = new Process(world, "server");
    const remote = new Remote(world, 1, 50);
    let calls = 0;
    const call = () => {
      remote.lossOneIn = 1;
      calls++;
    };
    remote.call(server, call).catch((error: unknown) => world.note(String(error)));
    world.run(100);
    expect(calls).toBe(1);
    expect(world.history).toMatchObject([[expect.any(Number), expect.stringContaining("no response")]]);
  });

  test("a violation in what the service calls back ends the run, though the service catches it", () => {
    const world = new World(1);
    world.schedule(1, () => void Promise.resolve().then(() => world.check(false, "broken")));
    world.schedule(2, () => world.note("later"));
    expect(() => world.run(10)).toThrow("broken");
    expect(world.history).toEqual([]);
  });
});
