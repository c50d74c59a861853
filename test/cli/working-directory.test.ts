import { beforeAll, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Child } from "../../trials/harness/child.ts";
import { bearer } from "../bearer.ts";
import { cleanUpAfterAll, EXECUTABLE, resultOf, ROOT, spawnTracked, cliDirectory } from "./cli.ts";
// Code and settings of the working directory have no effect.
cleanUpAfterAll();

/** A directory in which each of Bun's files leaves a trace if it is read. */
let hostile: string;
let trace: string;

beforeAll(() => {
  hostile = cliDirectory();
  trace = join(hostile, "trace");
  const write = (name: string, text: string) => writeFileSync(join(hostile, name), text);
  const leaveTrace = `require("node:fs").appendFileSync(${JSON.stringify(trace)}, import.meta.path + "\\n");`;
  write("preload.ts", leaveTrace);
  write("bunfig.toml", 'preload = ["./preload.ts"]\n[run]\npreload = ["./preload.ts"]\n');
  write("replacement.ts", `${leaveTrace} export {};`);
  const paths = { "*": ["./replacement.ts"] };
  write("tsconfig.json", JSON.stringify({ compilerOptions: { baseUrl: ".", paths } }));
  write("package.json", '{"name":"hostile","browser":{"preact":"./replacement.ts"}}');
  for (const name of [".env", ".env.local", ".env.development", ".env.production"]) {
    write(name, "PETSTORE_NO_SUCH_SETTING=1\nPETSTORE_JSON=true\nPETSTORE_DATA=elsewhere\n");
  }
  mkdirSync(join(hostile, "sub"));
});

/** A copy of the project that shares its code and packages, and has the files of the hostile directory. */
function hostileProject(): string {
  const project = cliDirectory();
  for (const name of ["src", "node_modules"]) symlinkSync(join(ROOT, name), join(project, name));
  for (const name of ["package.json", "petstore", "tsconfig.json"]) {
    copyFileSync(join(ROOT, name), join(project, name));
  }
  for (const name of ["bunfig.toml", "preload.ts", ".env", ".env.local"]) {
    copyFileSync(join(hostile, name), join(project, name));
  }
  return project;
}

test("without the launcher they have an effect: the directory is as hostile as it should be", async () => {
  const main = join(ROOT, "src/cli/main.ts");
  await spawnTracked([process.execPath, main, "keys", "list"], { cwd: hostile }).exited;
  expect(existsSync(trace)).toBeTrue();
  rmSync(trace);
});

test.each([
  ["./petstore", () => [EXECUTABLE], () => hostile],
  ["./petstore in a directory below", () => [EXECUTABLE], () => join(hostile, "sub")],
  ["npx petstore", () => ["npx", "--offline", "--prefix", ROOT, "petstore"], () => hostile],
  ["npm run petstore", () => ["npm", "run", "-s", "petstore", "--"], hostileProject],
])("%s", async (_name, command, cwd) => {
  const child = spawnTracked([...command(), "keys", "list"], { cwd: cwd() });
  const { code, out, err } = await resultOf(child);
  expect({ out, err: err.replace(/^npm (?:warn|notice).*\n/gm, ""), code }).toEqual({
    out: "",
    err: expect.stringMatching(/^petstore: there is no database in production \(data: \.\/data\): .*\n$/),
    code: 1,
  });
  expect(existsSync(trace)).toBeFalse();
});

test("npm start, which takes flags; a signal to npm stops the server", async () => {
  const [cwd, data] = [hostileProject(), cliDirectory()];
  const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], XDG_CONFIG_HOME: cwd };
  const server = new Child(["npm", "start", "-s", "--", "--port", "0", "--data", data], { cwd, env });
  const [, url = ""] = await server.line(/^ {2}API +(\S+)$/);
  const secret = readFileSync(join(data, "production-first-key"), "utf8").trim();
  const response = await fetch(`${url}/pets`, { headers: bearer(secret) });
  expect(response.status).toBe(200);
  expect(await server.stop("SIGTERM")).toBe(0);
  await expect(fetch(url)).rejects.toThrow();
  expect(existsSync(trace)).toBeFalse();
});
