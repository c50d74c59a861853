import { afterAll, beforeAll, describe, expect, test, setDefaultTimeout } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cleanUp, EXECUTABLE, spawnTracked, temporaryDirectory } from "./cli.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

const PROJECT = dirname(EXECUTABLE);

/** A directory in which each of Bun's files leaves a trace if it is read. */
let hostile: string;
let trace: string;

beforeAll(() => {
  hostile = temporaryDirectory();
  trace = join(hostile, "trace");
  const write = (name: string, text: string) => writeFileSync(join(hostile, name), text);
  const leaveTrace = `require("node:fs").appendFileSync(${JSON.stringify(trace)}, import.meta.path + "\\n");`;
  write("preload.ts", leaveTrace);
  write("bunfig.toml", 'preload = ["./preload.ts"]\n[run]\npreload = ["./preload.ts"]\n');
  write("replacement.ts", `${leaveTrace} export {};`);
  const paths = { "*": ["./replacement.ts"] };
  write("tsconfig.json", JSON.stringify({ compilerOptions: { baseUrl: ".", paths } }));
  write("package.json", '{"name":"hostile","browser":{"ioredis":"./replacement.ts"}}');
  for (const name of [".env", ".env.local", ".env.development", ".env.production"]) {
    write(name, "PETSTORE_NO_SUCH_SETTING=1\nPETSTORE_JSON=true\nPETSTORE_DATA=elsewhere\n");
  }
  mkdirSync(join(hostile, "sub"));
});

async function run(command: string[], cwd: string) {
  const child = spawnTracked(command, { cwd });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { out, err, code };
}

const NO_KEYS = /^There are no keys in production \(data: \.\/data\)/;

describe("code and settings of the working directory have no effect", () => {
  test("without the launcher they have: the directory is as hostile as it should be", async () => {
    const main = join(PROJECT, "src/cli/main.ts");
    await run([process.execPath, main, "keys", "list"], hostile);
    expect(existsSync(trace)).toBeTrue();
    rmSync(trace);
  });

  test.each([
    ["./petstore", () => [EXECUTABLE], () => hostile],
    ["a directory below", () => [EXECUTABLE], () => join(hostile, "sub")],
    ["npx petstore", () => ["npx", "--offline", "--prefix", PROJECT, "petstore"], () => hostile],
  ])(
    "%s",
    async (_name, command, cwd) => {
      const { out, err, code } = await run([...command(), "keys", "list"], cwd());
      expect(out).toMatch(NO_KEYS);
      expect({ err: err.replace(/^npm warn .*\n/gm, ""), code }).toEqual({ err: "", code: 0 });
      expect(existsSync(trace)).toBeFalse();
    },
    20_000,
  );

  test.each([
    ["npm run petstore", ["run", "-s", "petstore", "--", "keys", "list"]],
    ["npm start", ["start", "-s", "--", "--port", "many"]],
  ])("%s, with such files in the project's own directory", async (_name, argv) => {
    // A copy of the project that shares its code and packages, and has the files of the hostile directory.
    const project = temporaryDirectory();
    for (const name of ["src", "node_modules"]) symlinkSync(join(PROJECT, name), join(project, name));
    for (const name of ["package.json", "petstore", "tsconfig.json"]) {
      copyFileSync(join(PROJECT, name), join(project, name));
    }
    for (const name of ["bunfig.toml", "preload.ts", ".env", ".env.local"]) {
      copyFileSync(join(hostile, name), join(project, name));
    }
    const { out, err } = await run(["npm", ...argv], project);
    expect(out + err).toMatch(/There are no keys in production \(data: \.\/data\)|--port is "many"/);
    expect(existsSync(trace)).toBeFalse();
  });
});
