import { expect, test } from "bun:test";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { cleanUpAfterAll, InProcessCli } from "../../cli/cli.ts";

cleanUpAfterAll();

const MEASURED_MS = 4_000;

test.each([false, true])(
  "a server at rest sends about 5 statements a second (with Valkey: %p)",
  async (isWithValkey) => {
    let statements = 0;
    await using opened = new AsyncDisposableStack();
    const postgres = await startPostgres({
      settings: { log_statement: "all" },
      onLine: (line) => (statements += Number(/LOG: +(?:statement|execute)/.test(line))),
    });
    opened.defer(postgres.stop);
    const limits: string[] = [];
    if (isWithValkey) {
      const valkey = await startValkey();
      opened.defer(valkey.stop);
      limits.push("--limits-url", valkey.url);
    }
    opened.use(await new InProcessCli().serve(["--database-url", postgres.url, ...limits]));
    await Bun.sleep(2_000);
    const [before, startedAt] = [statements, performance.now()];
    await Bun.sleep(MEASURED_MS);
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(statements - before).toBeWithin(1, 6 * seconds + 1);
  },
);
