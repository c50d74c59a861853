import { PAUSE_MS } from "../../src/store/sqlite/waits.ts";
import { Overloaded, Unavailable } from "../../src/api/errors.ts";
import { BatchQueue } from "../../src/store/sql/batch-queue.ts";
import { Process, Remote, type World } from "./world.ts";

/** A write of a client, with its outcome. */
interface Write {
  readonly id: number;
  readonly server: Process;
  readonly submittedAt: number;
  /** Whether the transaction fails because of the write. */
  readonly isFaulty: boolean;
  outcome?: "acknowledged" | "rejected" | "unknown";
}

class Busy extends Error {}

const MAX_BUSY_MS = 100;
const TIMEOUT_MS = 60;
const MAX_COMMIT_MS = 5;
const MAX_BATCH = 8;
const MAX_QUEUED = 24;
/** The longest wait behind a lock: as long as a batch is repeated, plus its last attempt and a blocked event loop. */
const MAX_LOCKED_MS = MAX_BUSY_MS + 60;
/**
 * The longest wait. Up to three batches are ahead. Each is repeated or times out: 15 transactions with faulty writes.
 */
const MAX_WAIT_MS = 4 * (MAX_BUSY_MS + 15 * MAX_COMMIT_MS);

/**
 * Three servers write to one database: in process, like SQLite, which is locked at times, or over a network, like
 * PostgreSQL, which pauses at times and whose replies get lost. Servers block, are killed and start again.
 *
 * The rules are: A write is acknowledged after its commit and never lost. None is committed twice. A rejected write is
 * not committed, unless the database did not respond. Acknowledged writes of a server are committed in the order of
 * their arrival. No write waits longer than a bound. A closed store has settled every write.
 */
export function simulateGroupCommit(world: World): void {
  const { random } = world;
  const isLocal = random.chance(2);
  const committed: Write[] = [];
  const writes: Write[] = [];
  let committingUntil = 0;
  /** The period in which another program holds the lock. */
  let lock = { from: 0, to: 0 };
  const database = new Remote(world, 2, TIMEOUT_MS);

  function transact(batch: readonly Write[]): readonly number[] {
    const faulty = batch.find(({ isFaulty }) => isFaulty);
    if (faulty) throw new Error(`write ${faulty.id} is faulty`);
    world.note("commits", ...batch.map(({ id }) => id));
    committed.push(...batch);
    return batch.map(({ id }) => id);
  }

  function commitHere(server: Process, batch: readonly Write[]): readonly number[] {
    server.block(random.between(0, MAX_COMMIT_MS));
    if (world.now < Math.max(lock.to, committingUntil)) throw new Busy("locked");
    if (random.chance(50)) throw new Unavailable("the disk is full");
    committingUntil = server.now();
    return transact(batch);
  }

  function start(name: string): void {
    const server = new Process(world, name);
    const group = new BatchQueue<Write, number>({
      run: (batch) => (isLocal ? commitHere(server, batch) : database.call(server, () => transact(batch))),
      maxBatch: MAX_BATCH,
      maxQueued: MAX_QUEUED,
      ...(isLocal
        ? {
            retry: {
              isBusy: (error) => error instanceof Busy,
              maxMs: () => MAX_BUSY_MS,
              pauseMs: PAUSE_MS.groupCommit,
            },
          }
        : { maxQueueMs: TIMEOUT_MS }),
      scheduler: server,
    });
    for (let burst = 1 + random.below(5); burst > 0; burst--) {
      const atMs = random.between(0, 500);
      for (let count = random.below(20); count > 0; count--)
        world.schedule(atMs + random.between(0, 2), () => submit(group, server), server);
    }
    if (random.chance(3))
      world.schedule(random.between(0, 500), () => server.block(random.between(0, 50)), server);
    if (random.chance(2)) world.schedule(random.between(0, 600), () => close(group, server), server);
    else world.schedule(random.between(0, 600), () => kill(server, name), server);
  }

  function submit(group: BatchQueue<Write, number>, server: Process): void {
    const write: Write = {
      id: writes.length,
      server,
      submittedAt: world.now,
      isFaulty: random.chance(20),
    };
    writes.push(write);
    world.note(server.name, "submits", write.id, write.isFaulty ? "faulty" : "");
    const settle = (outcome: NonNullable<Write["outcome"]>, ...how: unknown[]) => {
      world.note(server.name, "settles", write.id, ...how);
      write.outcome = outcome;
      const isLocked = isLocal && lock.from <= write.submittedAt && server.now() < lock.to;
      world.check(
        world.now - write.submittedAt <= (isLocked ? MAX_LOCKED_MS : MAX_WAIT_MS),
        `write ${write.id} waited for too long`,
      );
    };
    group.submit(write).then(
      (result) => {
        settle("acknowledged", result);
        world.check(result === write.id, `write ${write.id} got the result of ${result}`);
        world.check(committed.includes(write), `write ${write.id} was acknowledged before its commit`);
      },
      (error: unknown) => {
        const isUnknown = error instanceof Unavailable && !(error instanceof Overloaded);
        settle(isUnknown ? "unknown" : "rejected", error);
        world.check(
          write.isFaulty || error instanceof Unavailable || error instanceof Busy,
          `write ${write.id} was rejected for another: ${error}`,
        );
      },
    );
  }

  function close(group: BatchQueue<Write, number>, server: Process): void {
    world.note(server.name, "closes");
    void group.close().then(() => {
      world.note(server.name, "has closed");
      for (const write of writes)
        world.check(
          write.server !== server || write.outcome !== undefined,
          `write ${write.id} was left at close`,
        );
    });
  }

  function kill(server: Process, name: string): void {
    world.note(name, "is killed");
    server.kill();
    if (writes.length < 200) world.schedule(10, () => start(name));
  }

  for (const name of ["server 1", "server 2", "server 3"]) start(name);
  world.often(4, 600, () => {
    lock = { from: world.now, to: world.now + random.between(0, random.pick([1, 10]) * MAX_BUSY_MS) };
    database.pause(random.between(0, 2 * TIMEOUT_MS));
    database.lossOneIn = random.below(30);
  });
  world.run(5_000);

  const unique = new Set<Write>();
  const last = new Map<Process, number>();
  for (const write of committed) {
    const { id, server } = write;
    world.check(!unique.has(write), `write ${id} was committed twice`);
    unique.add(write);
    // A write that timed out may be committed later.
    if (write.outcome !== "acknowledged") continue;
    world.check(id > (last.get(server) ?? -1), `write ${id} was committed after a later one`);
    last.set(server, id);
  }
  for (const write of writes) {
    const { id, server, outcome } = write;
    if (outcome === "acknowledged")
      world.check(unique.has(write), `write ${id} was acknowledged and is lost`);
    if (outcome === "rejected") world.check(!unique.has(write), `write ${id} was rejected and committed`);
    if (outcome === undefined) world.check(server.hasEnded, `write ${id} waits forever`);
  }
}
