import { expect, test } from "bun:test";
import { OutageCauses } from "../../src/runtime/outage-causes.ts";

test("an outage reports five causes at most, each once, and the next outage begins anew", () => {
  const reported: string[] = [];
  const causes = new OutageCauses((cause) => reported.push(String(cause)));
  for (const cause of ["a", "b", "a", "c", "d", "e", "f", "b"]) causes.report(cause);
  expect(reported.splice(0)).toEqual(["a", "b", "c", "d", "e"]);
  causes.end();
  causes.report("a");
  expect(reported).toEqual(["a"]);
});

test("a cause that passes by itself begins an outage, and is no news within one", () => {
  const reported: string[] = [];
  const causes = new OutageCauses(
    (cause) => reported.push(String(cause)),
    (cause) => cause === "starting",
  );
  for (const cause of ["down", "starting", "wrong password"]) causes.report(cause);
  expect(reported.splice(0)).toEqual(["down", "wrong password"]);
  causes.end();
  causes.report("starting");
  expect(reported).toEqual(["starting"]);
});
