import { afterAll, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { cleanUp, InProcessCli, cliDirectory } from "../../cli/cli.ts";

afterAll(cleanUp);

test("a named pipe without a reader or a writer is refused at once, and is not replaced", async () => {
  const cli = new InProcessCli();
  cli.input = "name,categoryId\nRex,7\n";
  expect((await cli.run(["import", "-"])).code).toBe(0);
  const pipe = join(cliDirectory(), "pipe");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  expect((await cli.run(["import", pipe])).err).toContain("it is not a regular file; pipe it into");
  await expect(cli.run(["export", "pets", pipe])).rejects.toThrow("is not a regular file");
  expect(statSync(pipe).isFIFO()).toBeTrue();
});
