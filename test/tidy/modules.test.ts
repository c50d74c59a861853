import { describe, expect, test } from "bun:test";
import { dirname, join } from "node:path";
import {
  TREES,
  code,
  imports,
  allImports,
  type Import,
  linesWhere,
  paths,
  source,
  withoutComments,
} from "./source.ts";

/** `src/http/body.ts` → `http`; `src/app.ts` → `app`. */
const moduleOf = (path: string) => path.split("/")[1]?.replace(/\.ts$/, "") ?? "";

/** What each module may import besides itself: modules above it, so that there is no way back. */
const ARROWS: Readonly<Record<string, string>> = {
  runtime: "",
  text: "",
  executable: "",
  client: "",
  pages: "text",
  http1: "runtime",
  api: "http1 runtime text",
  domain: "api runtime text",
  clock: "domain",
  "rate-limit": "domain api runtime",
  store: "domain api runtime text executable",
  observe: "domain api http1 runtime text",
  background: "observe domain api runtime text",
  "data-directory": "domain runtime store",
  "data-location": "data-directory domain store text",
  config: "domain api runtime text data-directory data-location",
  auth: "domain api http1 runtime",
  changes: "auth domain runtime",
  adapters: "store rate-limit background observe domain config data-directory data-location runtime",
  archive: "store domain api data-directory data-location runtime text",
  "browser-bundle": "api executable",
  public: "auth observe domain api http1 runtime text",
  petstore: "public domain api runtime text",
  operator: "background observe config domain api http1 browser-bundle data-directory pages runtime text",
  "docs-site": "public petstore client domain api browser-bundle pages runtime text executable",
  console: "operator pages domain api runtime text",
  doctor: "operator store observe http1 domain config data-directory data-location runtime text",
  app: "adapters public petstore operator docs-site changes auth background observe domain api config http1 clock runtime",
  demo: "app adapters store client observe domain data-location runtime text",
  cli: "app adapters demo doctor operator public petstore archive store background observe config domain api clock data-directory data-location runtime text executable",
};

/** What is around src, and what it may import besides itself and src. */
const ARROWS_AROUND: Readonly<Record<string, string>> = {
  "trials/harness": "",
  "trials/simulation": "trials/harness",
  "trials/attacks": "trials/harness",
  "trials/compatibility": "trials/harness",
  "trials/durability": "trials/harness",
  "trials/faults": "trials/harness trials/simulation",
  "trials/mutants": "trials/harness",
  bench: "trials",
  docs: "trials",
  scripts: "docs trials",
  test: "bench docs scripts trials",
};

/** They run in browsers too. */
const PORTABLE = new Set(["client", "domain"]);

/** Calls that open files, name them, give them a mode or an owner, or remove them. */
const FILE_CALLS = new RegExp(
  [
    String.raw`\b(?:[fl]?ch(?:mod|own)|rename|rm|rmdir|unlink|mkdir|mkdtemp|open|writeFile|appendFile|copyFile|cp|link|symlink|truncate|utimes|createWriteStream)(?:Sync)?\b[^;]*\} from "node:fs`,
    String.raw`\* as \w+ from "node:fs`,
    String.raw`\brequire\(`,
    String.raw`\bBun\.(?:write\((?!Bun\.stdout)|file\()`,
  ].join("|"),
);

/** What reads the files that flags and arguments name, or looks at the data directory itself. */
const FILES_OF_TYPED_PATHS = [
  "runtime/own-files",
  "config/(?:read-file|follow-files)",
  "operator/sign-in/token",
  "doctor/(?:files|settings-files)",
  "archive/files",
  "cli/commands/data/import",
  "data-directory",
];
/** What reads files of the system or of the project, whose paths are texts in the program. */
const FILES_OF_OWN_PATHS = [
  "http1/connection-limits",
  "observe/metrics",
  "cli/terminal",
  "browser-bundle/(?:bundle|build-client)",
];

describe("modules", () => {
  test("imports follow the arrows", () => {
    expect(imports.length).toBeGreaterThan(100);
    const faults = imports.filter(({ from, of }) => {
      if (!of.startsWith("src/") || moduleOf(from) === moduleOf(of)) return false;
      return ARROWS[moduleOf(from)]?.split(" ").includes(moduleOf(of)) !== true;
    });
    expect(faults).toEqual([]);
  });

  test("the map of imports has no arrow that no import needs", () => {
    const used = new Set(imports.map(({ from, of }) => `${moduleOf(from)} ← ${moduleOf(of)}`));
    const arrows = Object.entries(ARROWS).flatMap(([module, others]) =>
      others === "" ? [] : others.split(" ").map((other) => `${module} ← ${other}`),
    );
    expect(arrows.filter((arrow) => !used.has(arrow))).toEqual([]);
  });

  test("each arrow leads to a module above it in the map, so there is no circle of modules", () => {
    const modules = Object.keys(ARROWS);
    const faults = Object.entries(ARROWS).flatMap(([module, others]) =>
      (others.match(/\S+/g) ?? [])
        .filter((other) => !modules.slice(0, modules.indexOf(module)).includes(other))
        .map((other) => `${module} ← ${other}`),
    );
    expect(faults).toEqual([]);
  });

  test("imports around src follow their arrows", () => {
    const areaOf = (path: string) => /^(?:trials\/)?[^/]+/.exec(path)?.[0] ?? "";
    const around = allImports.filter(
      ({ from, of }) => !from.startsWith("src/") && TREES.test(of) && !of.startsWith("src/"),
    );
    expect(around.length).toBeGreaterThan(100);
    const faults = around.filter(({ from, of }) => {
      const area = areaOf(from);
      const others = ARROWS_AROUND[area]?.split(" ") ?? [];
      return area !== areaOf(of) && !others.some((other) => of.startsWith(`${other}/`));
    });
    expect(faults).toEqual([]);
  });

  test("no files import one another in a circle, not even types; what is imported when it is used aside", () => {
    const importsOf = new Map(
      code.map(({ path, text }) => {
        const statements = withoutComments(text).matchAll(
          /^(?:import|export)\b(?:[^;]*?\bfrom)? "(\.[^"]+)"/gm,
        );
        return [path, [...statements].map(([, name = ""]) => join(dirname(path), name))];
      }),
    );
    const checked = new Set<string>();
    const circleFrom = (path: string, way: readonly string[]): readonly string[] | undefined => {
      if (way.includes(path)) return [...way.slice(way.indexOf(path)), path];
      if (checked.has(path)) return undefined;
      const circle = (importsOf.get(path) ?? [])
        .map((next) => circleFrom(next, [...way, path]))
        .find(Boolean);
      checked.add(path);
      return circle;
    };
    expect(code.flatMap(({ path }) => circleFrom(path, []) ?? [])).toEqual([]);
  });

  test("what takes milliseconds to load is imported when it is used: no command and no server loads it at its start", () => {
    const slow = /^(?:yaml|openid-client|oxc-transform|node:(?:zlib|tls|net|http|https))$/;
    const importsOf = new Map(
      source.map(({ path, text }) => {
        const loader = path.endsWith("x") ? "tsx" : "ts";
        // Without the imports of types alone.
        const all = new Bun.Transpiler({ loader }).scanImports(text);
        const atStart = all.filter(({ kind }) => kind === "import-statement");
        return [path, atStart.map((each) => each.path)];
      }),
    );
    const reached = new Set(["src/cli/main.ts", "src/cli/command-table.ts", "src/app.ts"]);
    for (const path of reached)
      for (const name of importsOf.get(path) ?? [])
        if (name.startsWith(".")) reached.add(join(dirname(path), name));
    expect(reached.size).toBeGreaterThan(200);
    const faults = [...reached].flatMap((path) =>
      (importsOf.get(path) ?? []).filter((name) => slow.test(name)).map((name) => `${path}: ${name}`),
    );
    expect(faults).toEqual([]);
  });

  test("client and domain import no package and use nothing of the runtime", () => {
    const isPortable = (path: string) => PORTABLE.has(moduleOf(path));
    expect(imports.filter(({ from, of }) => isPortable(from) && !of.startsWith("src/"))).toEqual([]);
    const portable = source.filter(({ path }) => isPortable(path));
    const globals = /\b(?:Bun\.|process\.|Buffer\.)/;
    expect(
      portable.filter(({ text }) => globals.test(withoutComments(text))).map(({ path }) => path),
    ).toEqual([]);
  });

  test("imports within src stay within src", () => {
    const outside = imports.filter(({ of }) => /^(?:test|trials|bench|scripts|docs|\.\.)\b/.test(of));
    // The documentation site shows the pages of docs/.
    const isPage = ({ from, of }: Import) =>
      from === "src/docs-site/sources.ts" && /^docs\/[\w-]+\.(?:md|svg)$/.test(of);
    expect(outside.filter((each) => !isPage(each))).toEqual([]);
  });

  test.each<[string, RegExp, RegExp]>([
    [
      "the environment is read in config alone",
      /\bprocess\.env\b|\bBun\.env\b|\bimport\.meta\.env\b/,
      // Programs that the documentation shows read theirs.
      /^src\/(?:config\/variables|docs-site\/browser\/programs)\.ts$/,
    ],
    [
      "sockets are listened on in http1 alone",
      /\bBun\.(?:serve|listen)\b|import \{[^}]*\b(?:serve|listen)\b[^}]*\} from "bun"/,
      /^src\/http1\//,
    ],
    [
      "databases are spoken to in store alone, and SQLite's memory is used by the request log",
      /["']bun:sqlite["']|\bBun\.(?:sql|SQL)\b|\bSQL\b[^;]*from "bun"/,
      /^src\/store\/|^src\/observe\/request-log\.ts$/,
    ],
    [
      "files are opened, named, given a mode and an owner, and removed in own-files alone, which follows no link",
      FILE_CALLS,
      /^src\/runtime\/own-files\.ts$/,
    ],
    [
      "files whose names were found are read in own-files alone; others have a path that the user typed, or their own",
      /\b(?:readFileSync|createReadStream|statSync)\(/,
      new RegExp(`^src/(?:${[...FILES_OF_TYPED_PATHS, ...FILES_OF_OWN_PATHS].join("|")})\\.tsx?$`),
    ],
    [
      "SQLite opens files in database-file alone, which follows no link",
      /\bnew Database\((?!":memory:")|\bDatabase\.open\b/,
      /^src\/store\/sqlite\/database-file\.ts$/,
    ],
    [
      "the table of operations is handed in by the composition",
      /\bPETSTORE_API\b/,
      /^src\/(?:app\/|petstore\/)/,
    ],
    [
      "how long SQLite waits for a lock is in one table alone",
      /\bbusy_timeout = \d|\b(?:busyTimeoutMs|maxBusyMs|waitMs|pauseMs)(?::| =) [1-9]|\bsleepSync\([1-9]/,
      /^src\/store\/sqlite\/waits\.ts$/,
    ],
    [
      "the beginnings of secrets are in one table alone, which the masks know",
      /["`^]pet_[a-z]+_["`[($]/,
      /^src\/domain\/secrets\.ts$/,
    ],
  ])("%s", (_, usage, home) => {
    const faults = source.filter(({ path, text }) => !home.test(path) && usage.test(withoutComments(text)));
    expect(faults.map(({ path }) => path)).toEqual([]);
  });

  test("time, timers and chance of auth, background, changes, observe, rate-limit and store come from the scheduler", () => {
    const globals =
      /\bperformance\.now\b|\bBun\.sleep\(|\bMath\.random\b|(?<!\.)\b(?:set|clear)(?:Timeout|Interval|Immediate)\(/;
    const scheduled = source
      .filter(({ path }) => /^src\/(?:auth|background|changes|observe|rate-limit|store)\//.test(path))
      .map(({ path, text }) => ({ path, text: withoutComments(text) }));
    expect(linesWhere(scheduled, (line) => globals.test(line))).toEqual([]);
    // The test can fail.
    expect(linesWhere(source, (line) => globals.test(line))).not.toBeEmpty();
  });

  test("timers of servers and commands come from the scheduler, whose timers tests move and count", () => {
    const browsers = /^src\/(?:client|console|pages|docs-site)\//;
    const timers = /\bBun\.sleep\(|(?<!\.)\b(?:set|clear)(?:Timeout|Interval)\(/;
    const others = source
      .filter(({ path }) => !browsers.test(path) && path !== "src/runtime/scheduler.ts")
      .map(({ path, text }) => ({ path, text: withoutComments(text) }));
    expect(linesWhere(others, (line) => timers.test(line))).toEqual([]);
  });

  test("no two files export the same name; the client library, a package of its own, aside", () => {
    const files = new Map<string, Set<string>>();
    for (const { path, text } of source.filter(({ path }) => moduleOf(path) !== "client")) {
      const exported = /^export (?:async )?(?:const|function\*?|class|interface|type) (\w+)/gm;
      for (const [, name = ""] of text.matchAll(exported))
        files.set(name, (files.get(name) ?? new Set()).add(path));
    }
    expect([...files].filter(([, { size }]) => size > 1)).toEqual([]);
    expect(files.size).toBeGreaterThan(500);
  });

  test("what a module exports, another one uses: a page or a command that nobody shows is none", () => {
    const users = new Map<string, number>();
    for (const { text } of code)
      for (const word of new Set(withoutComments(text).match(/\w+/g)))
        users.set(word, (users.get(word) ?? 0) + 1);
    const unused = source.flatMap(({ path, text }) =>
      [...text.matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm)]
        .filter(([, name = ""]) => users.get(name) === 1)
        .map(([, name]) => `${path}: ${name}`),
    );
    expect(unused).toEqual([]);
  });

  test("at most 8 files are at the root of src", () => {
    expect(paths.filter((path) => /^src\/[^/]+$/.test(path)).length).toBeLessThanOrEqual(8);
  });

  test("no directory is called utils, helpers, common or types", () => {
    expect(paths.filter((path) => /\/(?:utils?|helpers?|common|types)\//.test(path))).toEqual([]);
  });
});
