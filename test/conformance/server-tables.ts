import { expect } from "bun:test";
import { Overloaded } from "../../src/api/errors.ts";
import type { Question } from "../../src/domain/servers.ts";
import type { TestCase } from "./store-fixture.ts";

/** What the servers of a database share while they run. */
export function serverTablesConformance(test: TestCase): void {
  test("every process reads the last report of each server, and a report returns those of the others", async (opened) => {
    const { serverReports, another } = opened;
    const { serverReports: ofOther } = await another();
    expect(await serverReports.report("one", "first")).toEqual([]);
    expect(await ofOther.report("other", '{"it\'s":"ü"}')).toMatchObject([{ id: "one", report: "first" }]);
    const [other, ...none] = await serverReports.report("one", "second");
    expect(other).toMatchObject({ id: "other", report: '{"it\'s":"ü"}' });
    expect(none).toEqual([]);
    expect(other?.ageMs).toBeWithin(0, 60_000);
    const listed = await ofOther.listReports();
    expect(listed.map(({ id, report }) => [id, report])).toEqual([
      ["one", "second"],
      ["other", '{"it\'s":"ü"}'],
    ]);
    await serverReports.deleteReports(["other", "none"]);
    expect((await serverReports.listReports()).map(({ id }) => id)).toEqual(["one"]);
  });

  test("a report that is longer than any server's is not read", async ({ serverReports }) => {
    await serverReports.report("long", "x".repeat(16_385));
    expect(await serverReports.report("one", "x".repeat(16_384))).toEqual([]);
    expect((await serverReports.listReports()).map(({ id }) => id)).toEqual(["one"]);
  });

  const question = (id: string, to?: string): Question => {
    return { id, operation: "getSeries", query: `range=1h&id=${id}`, ...(to !== undefined && { to }) };
  };
  const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id).toSorted();

  test("a question is shown to every server, and taken once by one that may answer it; whoever asked forgets it", async (opened) => {
    const { questions, keys, another } = opened;
    const { questions: ofOther, keys: keysOfOther } = await another();
    const hasQuestions = async () => [
      (await keys.changesSince(0)).hasQuestions,
      (await keysOfOther.changesSince(0)).hasQuestions,
    ];
    expect(await hasQuestions()).toEqual([false, false]);
    await questions.ask([question("1", "a"), question("2", "machine"), question("3"), question("4", "b")]);
    expect(await hasQuestions()).toEqual([true, true]);
    const taken = await Promise.all([ofOther.take("a", "machine", 9), questions.take("a2", "machine", 9)]);
    expect(taken.flatMap(idsOf).toSorted()).toEqual(["1", "2", "3"]);
    expect(taken[0]?.find(({ id }) => id === "1")).toEqual({
      id: "1",
      operation: "getSeries",
      query: "range=1h&id=1",
    });
    expect(await questions.take("a", "machine", 9)).toEqual([]);
    const read = async () =>
      (await questions.readAnswers(["1", "4", "5"])).toSorted((a, b) => Number(a.id) - Number(b.id));
    expect(await read()).toEqual([{ id: "1", takenBy: "a" }, { id: "4" }]);
    await ofOther.answer("1", '{"body":"ü"}');
    expect((await read())[0]).toEqual({ id: "1", takenBy: "a", answer: '{"body":"ü"}' });
    await questions.forget(["1", "2", "3", "4", "5"]);
    await ofOther.answer("2", "nobody waits");
    expect([await read(), await hasQuestions()]).toEqual([[], [false, false]]);
  });

  test("there are at most 256 questions, of which all or none are stored; an answer has at most 1 MiB", async (opened) => {
    const { questions } = opened;
    const many = (count: number) => Array.from({ length: count }, () => question(crypto.randomUUID()));
    await questions.ask(many(250));
    await expect(questions.ask(many(7))).rejects.toThrow(Overloaded);
    await questions.ask([...many(5), question("last")]);
    await expect(questions.ask([question("more")])).rejects.toThrow("256 questions wait for servers");
    const taken = [await questions.take("a", "machine", 250), await questions.take("a", "machine", 250)];
    expect(taken.map(({ length }) => length)).toEqual([250, 6]);
    expect(new Set(taken.flatMap(idsOf)).size).toBe(256);
    const answers = async () => (await questions.readAnswers(["last"])).map(({ answer }) => answer?.length);
    await questions.answer("last", "x".repeat(2 ** 20));
    expect(await answers()).toEqual([2 ** 20]);
    await questions.answer("last", "x".repeat(2 ** 20 + 1));
    expect(await answers()).toEqual([undefined]);
  });
}
