import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, cpSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Child } from "../../../trials/harness/child.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { builtExecutable } from "../../../scripts/built-executable.ts";
import { freePort } from "../../../trials/harness/server.ts";
import { BUILDAH, executable as pathOf } from "../../../trials/harness/programs.ts";
import { expectSettings, readDeploy, ROOT } from "./deploy-files.ts";

const directory = temporaryDirectory("container");
const ENVIRONMENT = { ...process.env, BUILDAH_ISOLATION: "chroot", TMPDIR: directory };
const context = join(directory, "context");
const executable = join(context, "dist/petstore");

function buildahCommand(...argv: string[]): string[] {
  const directories = ["--root", join(directory, "images"), "--runroot", join(directory, "run")];
  const storage = ["--storage-driver", "vfs", ...directories];
  return [pathOf(BUILDAH), ...storage, ...argv];
}

function buildah(...argv: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(buildahCommand(...argv), {
    env: ENVIRONMENT,
    stderr: "pipe",
  });
  if (exitCode !== 0) throw new Error(`buildah ${argv[0]}: ${stderr}`);
  return stdout.toString().trim();
}

/** In place of the image that is named in the Containerfile, which a registry has: the C library of this machine. */
function buildBase(): void {
  const root = join(directory, "base");
  const { stdout } = Bun.spawnSync(["ldd", executable]);
  for (const [library = ""] of stdout.toString().matchAll(/\/lib\S+/g)) {
    mkdirSync(join(root, dirname(library)), { recursive: true });
    copyFileSync(realpathSync(library), join(root, library));
  }
  writeFileSync(join(directory, "base.Containerfile"), "FROM scratch\nCOPY . /\n");
  buildah("build", "-q", "-t", "base", "-f", join(directory, "base.Containerfile"), root);
}

cpSync(join(ROOT, "deploy/container"), join(context, "deploy/container"), { recursive: true });
copyFileSync(join(ROOT, ".dockerignore"), join(context, ".dockerignore"));
mkdirSync(dirname(executable));
copyFileSync(await builtExecutable(), executable);
buildBase();
const file = join(context, "deploy/container/Containerfile");
const flags = ["--build-arg", "BASE=localhost/base", "--format", "docker", "-t", "petstore", "-f", file];
buildah("build", "-q", ...flags, context);
const container = buildah("from", "localhost/petstore");
afterAll(() => void buildah("rm", "--all"));

describe("the image", () => {
  test("runs as a user without privileges, with a health check, a volume for the data and valid settings", () => {
    const image = JSON.parse(buildah("inspect", "--type", "image", "localhost/petstore"));
    const variables: string[] = image.Docker.config.Env;
    expectSettings(Object.fromEntries(variables.map((line) => line.split("=") as [string, string])));
    expect(image.Docker.config).toMatchObject({
      User: "65532:65532",
      Entrypoint: ["/usr/local/bin/petstore"],
      Cmd: ["serve"],
      Healthcheck: { Test: ["CMD", "/usr/local/bin/petstore", "health"] },
      Volumes: { "/var/lib/petstore": {} },
      StopSignal: "SIGTERM",
    });
  });

  test("contains the executable and the data directory, and no other file of the project", () => {
    expect(readDeploy("container/Containerfile").match(/^(?:COPY|ADD) .*/gm)).toEqual([
      "COPY --chmod=755 dist/petstore /usr/local/bin/petstore",
      "COPY --chown=65532:65532 --chmod=700 deploy/container/data /var/lib/petstore",
    ]);
  });

  test("serves, is healthy while it does, and stops on SIGTERM", async () => {
    const port = `${freePort()}`;
    const run = (...argv: string[]) => {
      const program = [container, "--", "/usr/local/bin/petstore"];
      const command = buildahCommand("run", "--env", `PETSTORE_PORT=${port}`, ...program);
      return new Child([...command, ...argv], { env: ENVIRONMENT, quit: "SIGTERM" });
    };
    expect(await run("health").ended).not.toBe(0);
    const server = run("serve", "--admin-address", "off");
    await server.line(/"event":"server\.started"/);
    const { status } = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect(status).toBe(200);
    expect(await run("health").ended).toBe(0);
    const { pid } = JSON.parse(/\{.*"event":"server\.started".*\}/.exec(server.output)?.[0] ?? "{}");
    process.kill(pid, "SIGTERM");
    expect(await server.ended).toBe(0);
    expect(server.output).toContain('"event":"server.stopped"');
  });
});
