import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { executable, SYSTEMD_ANALYZE } from "../../../trials/harness/programs.ts";
import { expectSettings, readDeploy, ROOT } from "./deploy-files.ts";

const UNIT = "petstore@.service";

/** The unit as one instance, with an executable that exists. */
function instance(): string {
  const directory = join(temporaryDirectory("systemd"), "units");
  mkdirSync(directory);
  const text = readDeploy(`systemd/${UNIT}`).replace("/usr/bin/petstore", join(ROOT, "petstore"));
  const path = join(directory, "petstore@8080.service");
  writeFileSync(path, text);
  return path;
}

function analyze(...argv: string[]) {
  const command = [executable(SYSTEMD_ANALYZE), "--no-pager", ...argv];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stderr: "pipe" });
  return { exitCode, output: stdout.toString() + stderr.toString() };
}

test("systemd finds no fault in the unit", () => {
  const { exitCode, output } = analyze("verify", "--man=no", instance());
  const faults = output.split("\n").filter((line) => line.includes("petstore"));
  expect({ exitCode, faults }).toEqual({ exitCode: 0, faults: [] });
});

test("the unit is exposed to less than 1.5 of 10, as systemd counts", () => {
  const { output } = analyze("security", "--offline=true", instance());
  const exposure = Number(/Overall exposure level for .*: ([\d.]+)/.exec(output)?.[1]);
  expect(exposure).toBeLessThan(1.5);
});

test("the settings beside it are valid, and a stop has the time that it takes", () => {
  const assignments = readDeploy("systemd/production.env").matchAll(/^(PETSTORE_\w+)=(.*)$/gm);
  expectSettings(Object.fromEntries([...assignments].map(([, name = "", value = ""]) => [name, value])));
  const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(readDeploy(`systemd/${UNIT}`))?.[1]);
  expect(seconds).toBeGreaterThanOrEqual(15);
});

test("the environment file names no host of examples, and the unit and logrotate agree on the access log", () => {
  const settings = readDeploy("systemd/production.env");
  expect(settings.split("\n").filter((line) => /^[^#].*example/.test(line))).toEqual([]);
  const [, directory] = /^LogsDirectory=(\w+)$/m.exec(readDeploy(`systemd/${UNIT}`)) ?? [];
  const rotation = readDeploy("logrotate/petstore");
  expect(rotation).toContain(`\n/var/log/${directory}/*.log {\n`);
  expect(settings).toContain(`\n#PETSTORE_ACCESS_LOG=/var/log/${directory}/access.log\n`);
  // The server creates the next file, and may write to the last one for a second.
  for (const needed of ["nocreate", "delaycompress"]) expect(rotation).toContain(`\n    ${needed}\n`);
  // As root, it would follow what that user puts in the place of the directory.
  const [, user] = /^User=(\w+)$/m.exec(readDeploy(`systemd/${UNIT}`)) ?? [];
  expect(rotation).toContain(`\n    su ${user} ${user}\n`);
});
