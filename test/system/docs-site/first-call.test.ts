import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../../../trials/harness/child.ts";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { startService } from "../../service.ts";

/** The programs on a page, as the copy button gives them. */
function programsOn(page: string): string[] {
  return Array.from(page.matchAll(/<code[^>]*>([\s\S]*?)<\/code>/g), ([, html = ""]) =>
    html
      .replaceAll(/<[^>]*>/g, "")
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&quot;", '"')
      .replaceAll("&#39;", "'")
      .replaceAll("&#x27;", "'")
      .replaceAll("&amp;", "&"),
  );
}

/** What a new reader does: copy the program of the first page, put in the key, run it. */
test("from /docs to the first 201 in TypeScript, with the client that the server serves", async () => {
  const service = await startService();
  const response = await fetch(new URL("/docs", service.url), { headers: { Accept: "text/html" } });
  const programs = programsOn(await response.text());
  const program = programs.find((text) => text.startsWith("// npm install ")) ?? "";
  const [, command = ""] = /^\/\/ (npm install \S+)\n/.exec(program) ?? [];
  expect(command).toEndWith("/client.tgz");

  const cwd = temporaryFolder("first-call");
  writeFileSync(join(cwd, "package.json"), '{"type":"module"}');
  const installed = await runProgram([...command.split(" "), "--no-audit", "--no-fund"], { cwd });
  expect(installed).toMatchObject({ code: 0 });
  const withKey = program.replaceAll("pet_live_YOUR_KEY", service.key);
  writeFileSync(join(cwd, "first.mjs"), new Bun.Transpiler({ loader: "ts" }).transformSync(withKey));
  const { out, err } = await runProgram(["node", "first.mjs"], { cwd });
  expect({ out, err }).toEqual({ out: expect.stringMatching(/completed\n$/), err: "" });
  const rex = { id: expect.anything(), name: "Rex", categoryId: 7, status: "sold" };
  expect((await service.call({ path: "/pets" })).json).toEqual([rex]);
  await service.stop();
}, 60_000);
