import { OutcomeUnknown, Overloaded, Unavailable } from "../../src/api/errors.ts";
import { CommitQueue } from "../../src/store/sqlite/commit-queue.ts";
import { Process, type World } from "./world.ts";

interface Write {
  readonly id: number;
  readonly server: Process;
  readonly waitsForDisk: boolean;
  /** Whether the transaction fails because of the write. */
  readonly isFaulty: boolean;
  outcome?: "acknowledged" | "rejected" | "unknown";
}

/** The writes of a transaction in the log. */
type Frame = readonly Write[];

/** Whether somebody waits for a write of the transaction to be on the disk. */
const isNeeded = (frame: Frame) => frame.some(({ waitsForDisk }) => waitsForDisk);

const MAX_BUSY_MS = 100;
const MAX_COMMIT_MS = 3;
const MAX_SYNC_MS = 10;
const MAX_SLOW_SYNC_MS = 3_000;
const MAX_QUEUED = 24;
const MAX_WRITES = 300;

/** What the connection throws while another process has the lock. */
const busy = () => new Unavailable("locked", { cause: { name: "SQLiteError", errno: 5 } });

/**
 * A server commits to the log of SQLite, on a disk that is slow at times, reports an error, and loses its power. The
 * server is killed before, during and after a sync, and starts again. Commands beside it sync their commits themselves.
 *
 * The rules are: What a client has read is on the disk, and no later read shows less. A write is acknowledged when it
 * is on the disk and reads show it. No power failure after that loses it, none is committed twice, and a rejected write
 * is not committed. After an error of a sync nothing more is acknowledged or shown. A closed store has settled every
 * write. A log that starts anew has no commit and no pinned read meanwhile.
 */
export function simulateCommits(world: World): void {
  const { random } = world;
  const log: Frame[] = [];
  /** How many frames a power failure leaves at least. */
  let onDisk = 0;
  /** Whether the disk has reported an error, after which it writes none of the pages before. */
  let hasLostPages = false;
  let lockedUntil = 0;
  let powerFailures = 0;
  const writes: Write[] = [];
  let running: { readonly server: Process; readonly queue: CommitQueue; visible(): number } | undefined;

  const synced = (length: number) => {
    if (!hasLostPages) onDisk = Math.max(onDisk, length);
  };

  function start(): void {
    if (running || writes.length >= MAX_WRITES) return;
    const server = new Process(world, "server");
    // The server reads what the disk has, and waits until what it shows is there.
    if (hasLostPages) loseUnsynced();
    hasLostPages = false;
    synced(log.length);
    let pinnedAt: number | undefined;
    let isRestarting = false;
    let hasFailed = false;
    let rowsWritten = 0;
    let staged: Write[] | undefined;
    const transaction = <T>(work: () => T): T => {
      server.block(random.between(0, MAX_COMMIT_MS));
      world.check(!isRestarting, "a commit came while the log started anew");
      world.check(!hasFailed, "a commit came after the error of a sync");
      if (world.now < lockedUntil) throw busy();
      if (random.chance(50)) throw new Unavailable("the disk is full");
      staged = [];
      try {
        const result = work();
        world.note("commits", ...staged.map(({ id }) => id));
        log.push(staged);
        rowsWritten += staged.length;
        return result;
      } finally {
        staged = undefined;
      }
    };
    const sync = () => {
      const { length } = log;
      const ms = random.chance(40) ? random.between(0, MAX_SLOW_SYNC_MS) : random.between(0, MAX_SYNC_MS);
      const fails = random.chance(60);
      world.note("syncs", length, fails ? "with an error" : "");
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      // The disk has it before the server knows.
      const era = powerFailures;
      if (!fails) world.schedule(random.between(0, ms), () => era === powerFailures && synced(length));
      world.schedule(
        ms,
        () => {
          hasLostPages ||= fails;
          if (fails) reject(new Error("EIO"));
          else resolve();
        },
        server,
      );
      return promise;
    };
    const makeRoom = () => {
      if (!random.chance(10)) return undefined;
      world.check(pinnedAt === undefined, "a read was pinned when the log was to start anew");
      isRestarting = true;
      return new Promise<void>((resolve, reject) => {
        const end = () => {
          isRestarting = false;
          if (!random.chance(20)) return resolve();
          hasLostPages = true;
          reject(new Error("EIO of a checkpoint"));
        };
        server.setTimeout(end, random.between(0, 5));
      });
    };
    const queue = new CommitQueue(
      {
        connection: {
          transaction,
          get rowsWritten() {
            return rowsWritten;
          },
        },
        disk: {
          reads: {
            pin: () => void (pinnedAt = log.length),
            unpin: () => void (pinnedAt = undefined),
          },
          log: { makeRoom, sync },
        },
        atEnd() {},
      },
      {
        maxQueuedWrites: MAX_QUEUED,
        maxBusyMs: MAX_BUSY_MS,
        scheduler: server,
        onSyncFailure() {
          world.check(!hasFailed, "the error of a sync was reported twice");
          hasFailed = true;
          world.note("has failed");
          server.setTimeout(() => end(server, "ends"), 5);
        },
      },
    );
    running = { server, queue, visible: () => pinnedAt ?? log.length };
    world.note("starts");
    let shown = 0;
    const read = () => {
      const visible = pinnedAt ?? log.length;
      const last = log.slice(0, visible).findLastIndex(isNeeded) + 1;
      world.check(last <= onDisk, `a read shows ${last} frames, and the disk has ${onDisk}`);
      world.check(visible >= shown, "a read shows less than an earlier one");
      shown = visible;
    };
    world.often(60, 500, read, server);
    const stage = (write: Write) => {
      if (write.isFaulty) throw new Error(`write ${write.id} is faulty`);
      // One in ten finds that there is nothing to write.
      if (write.id % 10 !== 9) staged?.push(write);
      queue.whenShown(read);
      return write.id;
    };
    for (let burst = 1 + random.below(5); burst > 0; burst--) {
      const atMs = random.between(0, 500);
      for (let count = random.below(12); count > 0; count--)
        world.schedule(atMs + random.between(0, 2), () => submit(queue, server, stage), server);
    }
    if (random.chance(3)) world.schedule(random.between(0, 600), () => close(queue, server), server);
    else world.schedule(random.between(0, 600), () => end(server, "is killed"), server);
  }

  function submit(queue: CommitQueue, server: Process, stage: (write: Write) => number): void {
    const write: Write = {
      id: writes.length,
      server,
      waitsForDisk: !random.chance(6),
      isFaulty: random.chance(20),
    };
    writes.push(write);
    const { id, waitsForDisk } = write;
    world.note("submits", id);
    queue
      .submit(() => stage(write), { waitsForDisk })
      .then(
        (result) => {
          write.outcome = "acknowledged";
          world.note("acknowledges", id);
          world.check(result === id, `write ${id} got the result of ${result}`);
          if (id % 10 === 9) return;
          const place = log.findIndex((frame) => frame.includes(write));
          world.check(place !== -1, `write ${id} was acknowledged before its commit`);
          world.check(
            !waitsForDisk || place < onDisk,
            `write ${id} was acknowledged before it was on the disk`,
          );
          const visible = running?.visible() ?? 0;
          world.check(place < visible, `write ${id} was acknowledged before reads show it`);
        },
        (error: unknown) => {
          write.outcome = error instanceof OutcomeUnknown ? "unknown" : "rejected";
          world.note("rejects", id, error);
          world.check(
            write.isFaulty || error instanceof Unavailable,
            `write ${id} was rejected for another: ${error}`,
          );
          world.check(
            error instanceof Overloaded ||
              !waitsForDisk ||
              !queue.hasFailed ||
              !isCommitted(write) ||
              error instanceof OutcomeUnknown,
            `write ${id} was committed, and its rejection says that it was not`,
          );
        },
      );
  }

  const isCommitted = (write: Write) => log.some((frame) => frame.includes(write));

  function close(queue: CommitQueue, server: Process): void {
    void queue.close().then(() => {
      world.note("has closed");
      for (const write of writes)
        world.check(
          write.server !== server || write.outcome !== undefined,
          `write ${write.id} was left at close`,
        );
      end(server, "ends");
    });
  }

  /** Ends a process. What it has written stays in the kernel's memory. */
  function end(server: Process, how: string): void {
    if (running?.server !== server) return;
    world.note(how);
    server.kill();
    running = undefined;
    world.schedule(random.between(1, 50), start);
  }

  /** Leaves of what is not on the disk a beginning by chance. */
  function loseUnsynced(): void {
    const kept = onDisk + random.below(log.length - onDisk + 1);
    for (const write of log.slice(kept).flat())
      world.check(
        write.outcome !== "acknowledged" || !write.waitsForDisk,
        `write ${write.id} was acknowledged and is lost`,
      );
    log.length = kept;
    onDisk = kept;
  }

  /** Commits as a command does, which has the lock until its commit is on the disk. */
  function commitCommand(): void {
    if (world.now < lockedUntil || hasLostPages) return;
    const ms = random.between(0, random.pick([1, 3]) * MAX_BUSY_MS);
    lockedUntil = world.now + ms;
    world.note("a command commits");
    const era = powerFailures;
    world.schedule(ms, () => {
      if (hasLostPages || era !== powerFailures) return;
      log.push([]);
      synced(log.length);
    });
  }

  start();
  world.often(4, 1_500, commitCommand);
  world.often(3, 1_500, () => {
    world.note("the power fails");
    powerFailures++;
    lockedUntil = 0;
    running?.server.kill();
    running = undefined;
    loseUnsynced();
    world.schedule(random.between(1, 50), start);
  });
  world.run(60_000);

  const committed = log.flat();
  world.check(new Set(committed).size === committed.length, "a write was committed twice");
  for (const write of writes) {
    const { id, server, outcome } = write;
    if (outcome === "rejected")
      world.check(!committed.includes(write), `write ${id} was rejected and committed`);
    if (outcome === undefined) world.check(server.hasEnded, `write ${id} waits forever`);
  }
}
