import { expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_POLICY } from "../../../src/domain/policy.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { cleanUpAfterAll, EXECUTABLE, InProcessCli } from "../../cli/cli.ts";
import { readDeploy, ROOT } from "../../system/deploy/deploy-files.ts";

cleanUpAfterAll();

const docs = readFileSync(join(ROOT, "docs/deployment.md"), "utf8");
const limits = readDeploy("limits.yaml").replace("perMinute: 60,", "perMinute: 61,");

/** The commands of the documentation that match, without what starts the container of a command. */
const commandsAfter = (start: RegExp): string[] =>
  docs
    .split("\n")
    .flatMap((line) => (start.test(line) ? `petstore ${line.replace(start, "").replace(/ +#.*/, "")}` : []));

/** Runs the commands in a directory with the files of deploy, changed limits, and secrets in place of those there. */
async function run(commands: readonly string[], from: string, variables: Record<string, string>) {
  const directory = temporaryDirectory("deploy");
  cpSync(join(ROOT, "deploy"), directory, { recursive: true });
  writeFileSync(join(directory, "limits.yaml"), limits);
  mkdirSync(join(directory, "bin"));
  symlinkSync(EXECUTABLE, join(directory, "bin/petstore"));
  const env = { HOME: directory, PATH: `${directory}/bin:${process.env["PATH"]}`, ...variables };
  const out: string[] = [];
  for (const command of commands) {
    const child = Bun.spawnSync(["sh", "-c", command], { cwd: join(directory, from), env, stderr: "pipe" });
    expect([command, child.exitCode, child.stderr.toString()]).toEqual([command, 0, ""]);
    out.push(child.stdout.toString());
  }
  return out;
}

/** What a server that starts afterwards has. */
async function expectLimits(storage: readonly string[]): Promise<void> {
  const cli = new InProcessCli();
  const { stop } = await cli.serve(storage);
  expect(await cli.json("plans", "list", ...storage)).toMatchObject([
    { plan: "free", perMinute: 61 },
    {},
    {},
    {},
  ]);
  await stop();
  const entries = await cli.json<object[]>("audit", "--action", "plan.updated", ...storage);
  expect(entries).toMatchObject([{ before: { perMinute: 60 }, after: { plan: "free", perMinute: 61 } }]);
}

const secretsFor = async () => {
  const directory = temporaryDirectory("secrets");
  const url = await postgresUrl();
  for (const name of ["database-url", "admin-token", "metrics-token"])
    writeFileSync(join(directory, name), name === "database-url" ? url : `the-${name}-of-this-deployment`, {
      mode: 0o600,
    });
  return { directory, storage: ["--database-url", url] };
};

test("the file has the first limits and ban rules", () => {
  const { plans, banRules } = Object(Bun.YAML.parse(readDeploy("limits.yaml")));
  expect({ plans, ban: banRules }).toEqual(DEFAULT_POLICY);
});

test("a package: the commands of the documentation give the first server its limits", async () => {
  const data = join(temporaryDirectory("data"), "petstore");
  const commands = commandsAfter(/^petstore (?=migrate |apply )/);
  expect(commands).toHaveLength(2);
  await run(commands, ".", { PETSTORE_DATA: data });
  await expectLimits(["--data", data]);
});

test("Compose: so do those with its service", async () => {
  const { directory, storage } = await secretsFor();
  const { services } = Object(Bun.YAML.parse(readDeploy("compose/compose.yaml")));
  const environment = Object.entries<string>(services["petstore-a"].environment).map(([name, value]) => [
    name,
    value.replace("/run/secrets", directory),
  ]);
  const commands = commandsAfter(/^docker compose run (?:--?\w+ )*petstore-a /);
  expect(commands).toHaveLength(2);
  await run(commands, "compose", {
    ...Object.fromEntries(environment),
    PETSTORE_DATA: temporaryDirectory("data"),
  });
  await expectLimits(storage);
});

test("Kubernetes: so does the job, with the secret and the file that the documentation makes", async () => {
  const { directory, storage } = await secretsFor();
  const { metadata, spec } = Object(Bun.YAML.parse(readDeploy("kubernetes/limits.yaml")));
  const { initContainers, containers, volumes } = spec.template.spec;
  const { configMap } = volumes.find(({ name }: { name: string }) => name === "limits");
  for (const command of [
    `create configmap ${configMap.name} --from-file=deploy/limits.yaml`,
    `apply -f deploy/kubernetes/limits.yaml`,
    `wait --for=condition=complete --timeout=5m job/${metadata.name}`,
  ])
    expect(docs).toContain(command);
  for (const { args, env } of [...initContainers, ...containers]) {
    const variables = env.map(({ name, value }: { name: string; value: string }) => [
      name,
      value.replace("/etc/petstore", directory),
    ]);
    const command = `petstore ${args.join(" ")}`.replace("/etc/petstore-limits/", "");
    await run([command], ".", {
      ...Object.fromEntries(variables),
      PETSTORE_DATA: temporaryDirectory("data"),
    });
  }
  await expectLimits(storage);
});
