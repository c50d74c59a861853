/* The packages of a release for Debian and for Red Hat, with the executable, the units and the settings. */

import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import lock from "../package-lock.json" with { type: "json" };
import { temporaryDirectory } from "../trials/harness/cleanup.ts";

const ROOT = resolve(import.meta.dir, "..");
const { version, releaseDate } = packageJson;

/** The processors, with what each is called elsewhere. */
const PLATFORMS = {
  x64: {
    elfMachine: 62,
    debian: "amd64",
    redHat: "x86_64",
    target: "bun-linux-x64",
    runtime: "@oven/bun-linux-x64",
  },
  arm64: {
    elfMachine: 183,
    debian: "arm64",
    redHat: "aarch64",
    target: "bun-linux-arm64",
    runtime: "@oven/bun-linux-aarch64",
  },
} as const;
export type Platform = keyof typeof PLATFORMS;
export const ALL_PLATFORMS: readonly Platform[] = ["x64", "arm64"];

export const PACKAGE_FILES = {
  debian: (platform: Platform) => `petstore_${version}_${PLATFORMS[platform].debian}.deb`,
  redHat: (platform: Platform) => `petstore-${version}-1.${PLATFORMS[platform].redHat}.rpm`,
};

/** The same sources make the same packages. */
const ENVIRONMENT = {
  ...process.env,
  SOURCE_DATE_EPOCH: String(Date.parse(releaseDate) / 1_000),
  LC_ALL: "C",
};

export function run(command: readonly string[], cwd = ROOT): string {
  const options = { cwd, env: ENVIRONMENT, stderr: "pipe" } as const;
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], options);
  if (exitCode !== 0) throw new Error(`${command.slice(0, 2).join(" ")} failed: ${stderr}`);
  return stdout.toString();
}

/** What makes an executable for another processor: its Bun, from the registry, with the hash of the lock file. */
export function runtimeOf(platform: Platform) {
  if (platform === process.arch) return undefined;
  const { runtime, target } = PLATFORMS[platform];
  const { version: runtimeVersion, integrity } = lock.packages[`node_modules/${runtime}`];
  const directory = temporaryDirectory("runtime");
  const name = run([
    "npm",
    "pack",
    "--silent",
    "--pack-destination",
    directory,
    `${runtime}@${runtimeVersion}`,
  ]).trim();
  const archive = join(directory, name);
  const hash = `sha512-${new Bun.CryptoHasher("sha512").update(readFileSync(archive)).digest("base64")}`;
  if (hash !== integrity)
    throw new Error(`${runtime} has the hash ${hash}, and package-lock.json ${integrity}`);
  run(["tar", "-xzf", archive, "-C", directory, "package/bin/bun"]);
  return { target, executablePath: join(directory, "package/bin/bun") };
}

/** The processor for which an executable is, by its ELF header. */
export function processorOf(executable: string): Platform | undefined {
  const machine = readFileSync(executable).readUInt16LE(18);
  return ALL_PLATFORMS.find((platform) => PLATFORMS[platform].elfMachine === machine);
}

interface TreeFile {
  readonly from: string;
  readonly mode?: number;
}

const SYSTEMD = "usr/lib/systemd/system";

/** The files of both packages from `deploy`, by their place in the system. */
const FILES: Readonly<Record<string, TreeFile>> = {
  [`${SYSTEMD}/petstore@.service`]: { from: "deploy/systemd/petstore@.service" },
  [`${SYSTEMD}/petstore-backup.service`]: { from: "deploy/systemd/petstore-backup.service" },
  [`${SYSTEMD}/petstore-backup.timer`]: { from: "deploy/systemd/petstore-backup.timer" },
  "usr/lib/sysusers.d/petstore.conf": { from: "deploy/packages/sysusers.conf" },
  "etc/petstore/production.env": { from: "deploy/systemd/production.env", mode: 0o640 },
  "etc/logrotate.d/petstore": { from: "deploy/logrotate/petstore" },
  "usr/share/doc/petstore/copyright": { from: "LICENSE" },
};

/** The settings, which an upgrade leaves as they are. */
const SETTINGS = ["etc/petstore/production.env", "etc/logrotate.d/petstore"];

const EXAMPLES = ["grafana", "haproxy", "limits.yaml", "nginx", "prometheus"];

/** Makes the tree of files that a package installs. */
function makeTree(executable: string, zshDirectory: string): string {
  const tree = temporaryDirectory("package");
  const write = (path: string, contents: string | Uint8Array, mode = 0o644) => {
    const file = join(tree, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, contents);
    chmodSync(file, mode);
  };
  for (const [path, { from, mode }] of Object.entries(FILES))
    write(path, readFileSync(join(ROOT, from)), mode);
  mkdirSync(join(tree, "usr/bin"), { recursive: true });
  copyFileSync(executable, join(tree, "usr/bin/petstore"));
  chmodSync(join(tree, "usr/bin/petstore"), 0o755);
  const completion = (shell: string) => run([join(ROOT, "petstore"), "completion", shell]);
  write("usr/share/bash-completion/completions/petstore", completion("bash"));
  write("usr/share/fish/vendor_completions.d/petstore.fish", completion("fish"));
  write(`${zshDirectory}/_petstore`, completion("zsh"));
  write(
    "usr/share/doc/petstore/CHANGELOG.md.gz",
    Bun.gzipSync(readFileSync(join(ROOT, "CHANGELOG.md")), { level: 9 }),
  );
  for (const name of EXAMPLES)
    cpSync(join(ROOT, "deploy", name), join(tree, "usr/share/doc/petstore/examples", name), {
      recursive: true,
    });
  // Only those who may read the settings may see that there are any.
  chmodSync(join(tree, "etc/petstore"), 0o750);
  return tree;
}

/** `executable` is that of the platform. */
export function makeDebianPackage(directory: string, platform: Platform, executable: string): void {
  const tree = makeTree(executable, "usr/share/zsh/vendor-completions");
  const control = join(tree, "DEBIAN");
  mkdirSync(control);
  const size = Number(
    run(["du", "--summarize", "--block-size=1024", "--apparent-size", tree]).split("\t")[0],
  );
  const fields = {
    Package: "petstore",
    Version: version,
    Architecture: PLATFORMS[platform].debian,
    Maintainer: "Petstore <petstore@localhost>",
    "Installed-Size": size,
    Depends: "libc6 (>= 2.17), systemd",
    Recommends: "logrotate",
    Section: "web",
    Priority: "optional",
    Description:
      "pet store API over HTTP with API keys and exact rate limits\n" +
      " A server with an API for pets and orders, rate limits for each key, a console\n" +
      " for operators, and a command line. It is one executable with everything\n" +
      " inside. Settings are in /etc/petstore, the data is in /var/lib/petstore.",
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  writeFileSync(join(control, "control"), lines.join(""));
  writeFileSync(join(control, "conffiles"), SETTINGS.map((path) => `/${path}\n`).join(""));
  for (const name of ["postinst", "prerm", "postrm"]) {
    copyFileSync(join(ROOT, "deploy/packages", name), join(control, name));
    chmodSync(join(control, name), 0o755);
  }
  chmodSync(tree, 0o755);
  const file = join(directory, PACKAGE_FILES.debian(platform));
  run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, file]);
}

export function makeRedHatPackage(directory: string, platform: Platform, executable: string): void {
  const tree = makeTree(executable, "usr/share/zsh/site-functions");
  const work = temporaryDirectory("rpm");
  const { redHat } = PLATFORMS[platform];
  const macros = {
    _topdir: work,
    _rpmdir: work,
    _rpmfilename: PACKAGE_FILES.redHat(platform),
    package_version: version,
    tree,
    use_source_date_epoch_as_buildtime: 1,
    clamp_mtime_to_source_date_epoch: 1,
    _buildhost: "localhost",
  };
  const flags = Object.entries(macros).flatMap(([name, value]) => ["--define", `${name} ${value}`]);
  run([
    "rpmbuild",
    "-bb",
    "--quiet",
    "--target",
    `${redHat}-linux`,
    ...flags,
    "deploy/packages/petstore.spec",
  ]);
  copyFileSync(join(work, PACKAGE_FILES.redHat(platform)), join(directory, PACKAGE_FILES.redHat(platform)));
}
