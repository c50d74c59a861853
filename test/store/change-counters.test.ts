import { describe, expect, test } from "bun:test";
import { ChangeCounters } from "../../src/store/sqlite/pet-changes.ts";

describe("ChangeCounters", () => {
  test("a range is unchanged until a pet in one of its blocks changes", () => {
    const counters = new ChangeCounters();
    const isUnchanged = counters.watch({ from: 65n, to: 192n });
    counters.petChanged(64n);
    counters.petChanged(193n);
    counters.petAdded();
    expect(isUnchanged()).toBe(true);
    counters.petChanged(192n);
    expect(isUnchanged()).toBe(false);
  });

  test("a range without an end changes with every pet that changes or is added", () => {
    const counters = new ChangeCounters();
    const beforeAdded = counters.watch({ from: 1_000n });
    counters.petAdded();
    expect(beforeAdded()).toBe(false);
    const beforeChanged = counters.watch({ from: 1_000n });
    counters.petChanged(5_000n);
    expect(beforeChanged()).toBe(false);
  });

  test("a range of more than 17 blocks changes with every pet that changes", () => {
    const counters = new ChangeCounters();
    const short = counters.watch({ from: 1n, to: 17n * 64n });
    const long = counters.watch({ from: 1n, to: 17n * 64n + 1n });
    counters.petChanged(100_000n);
    expect([short(), long()]).toEqual([true, false]);
  });

  test("a deletion or a change of another process invalidates every range and every block", () => {
    const counters = new ChangeCounters();
    const ranges = [
      { from: 1n },
      { from: 1n, to: 20n },
      { from: 262_081n, to: 262_144n },
      { from: 1n, to: 9_999n },
    ];
    const checks = ranges.map((range) => counters.watch(range));
    const before = counters.additionsAndDeletions;
    counters.everythingChanged();
    expect(checks.map((isUnchanged) => isUnchanged())).toEqual([false, false, false, false]);
    expect([counters.inBlock(0), counters.inBlock(4_095)]).toEqual([1, 1]);
    expect(counters.additionsAndDeletions).toBe(before + 1);
  });

  test("memory is bounded: block 4,096 shares the counter of block 0", () => {
    const counters = new ChangeCounters();
    counters.petChanged(4_096n * 64n + 1n);
    expect([counters.inBlock(0), counters.inBlock(1), counters.inBlock(4_096)]).toEqual([1, 0, 1]);
  });
});
