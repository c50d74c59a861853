import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../../package.json" with { type: "json" };
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { executable, PYTHON } from "../../../trials/harness/programs.ts";
import { run, typeErrorsIn } from "../../client/install.ts";
import { startService } from "../../service.ts";

/** What a new reader of /docs does: copy the program of the first page, export the key, run it. */
const service = await startService();
const response = await fetch(new URL("/docs", service.url), { headers: { Accept: "text/html" } });
const env = { PETSTORE_KEY: service.key };
const page = await response.text();
afterAll(() => service.stop());

const REX = { id: expect.anything(), name: "Rex", categoryId: 7, status: "sold" };

/** The last program on the page that begins with this comment, as the copy button gives it. */
function programAfter(comment: string): string {
  const blocks = Array.from(page.matchAll(/<code[^>]*>([\s\S]*?)<\/code>/g), ([, html = ""]) =>
    html
      .replaceAll(/<[^>]*>/g, "")
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&quot;", '"')
      .replaceAll("&#39;", "'")
      .replaceAll("&#x27;", "'")
      .replaceAll("&amp;", "&"),
  );
  const program = blocks.findLast((text) => text.startsWith(comment));
  if (program === undefined) throw new Error(`no program with ${comment}`);
  return program;
}

test("from /docs to the first 201 in TypeScript, with the client that the server serves", async () => {
  const directory = temporaryDirectory("first-call");
  const program = programAfter("// npm install ");
  const [, command = ""] = /^\/\/ (npm install \S+)\n/.exec(program) ?? [];
  expect(command).toEndWith(`/client-${version}.tgz`);
  writeFileSync(join(directory, "package.json"), '{"type":"module"}');
  const cache = ["--cache", join(directory, "cache")];
  await run([...command.split(" "), "--no-audit", "--no-fund", ...cache], directory);
  writeFileSync(join(directory, "first.ts"), program);
  expect(await typeErrorsIn(directory)).toBe("");
  const script = new Bun.Transpiler({ loader: "ts" }).transformSync(program);
  writeFileSync(join(directory, "first.mjs"), script);
  expect(await run(["node", "first.mjs"], directory, env)).toEndWith("completed\n");
  expect((await service.call({ path: "/pets" })).json).toEqual([REX]);
});

test("from /docs to the first 201 in JavaScript, in the file that the program names", async () => {
  const directory = temporaryDirectory("first-call");
  const program = programAfter("// Save this as ");
  const [, file = ""] = /^\/\/ Save this as (\S+):/.exec(program) ?? [];
  writeFileSync(join(directory, "package.json"), "{}");
  writeFileSync(join(directory, file), program);
  expect(await run(["node", file], directory, env)).toEndWith("completed\n");
  expect((await service.call({ path: "/pets" })).json).toContainEqual(REX);
});

test("from /docs to the first 201 in Python", async () => {
  const directory = temporaryDirectory("first-call");
  writeFileSync(join(directory, "first.py"), programAfter("# pip install requests\n"));
  expect(await run([executable(PYTHON), "first.py"], directory, env)).toEndWith("completed\n");
  expect((await service.call({ path: "/pets" })).json).toContainEqual(REX);
});
