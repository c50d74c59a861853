import { expect, test } from "bun:test";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { cleanUpAfterAll, InProcessCli } from "../../cli/cli.ts";

cleanUpAfterAll();

const MEASURED_MS = 4_000;

test("a server at rest sends about 5 statements a second", async () => {
  let statements = 0;
  await using opened = new AsyncDisposableStack();
  const postgres = await startPostgres({
    settings: { log_statement: "all" },
    onLine: (line) => (statements += Number(/LOG: +(?:statement|execute)/.test(line))),
  });
  opened.defer(postgres.stop);
  opened.use(await new InProcessCli().serve(["--database-url", postgres.url]));
  await Bun.sleep(2_000);
  const [before, startedAt] = [statements, performance.now()];
  await Bun.sleep(MEASURED_MS);
  const seconds = (performance.now() - startedAt) / 1_000;
  expect(statements - before).toBeWithin(1, 6 * seconds + 1);
});
