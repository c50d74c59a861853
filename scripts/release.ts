/*
 * Makes the files of a release in dist/release: `npm run release`. The workflow of a tag runs its parts on several
 * machines: `platform` (the image for this processor), `common` (the executables and packages for all processors, the
 * client package, the bill of materials, the notes) and, when all files are there, `checksums`.
 */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import packageJson from "../package.json" with { type: "json" };
import { clientArchive } from "../src/docs-site/client-package.ts";
import { buildExecutable, currentCommit } from "./build.ts";
import {
  makeDebianPackage,
  ALL_PLATFORMS,
  makeRedHatPackage,
  type Platform,
  run,
  runtimeOf,
} from "./packages.ts";

const ROOT = resolve(import.meta.dir, "..");
const { version } = packageJson;
const CHECKSUMS = "SHA256SUMS";

export const RELEASE_FILES = {
  executable: (platform: Platform) => `petstore-${version}-linux-${platform}`,
  image: `petstore-${version}-linux-${process.arch}.oci.tar`,
  client: `petstore-client-${version}.tgz`,
  bom: `petstore-${version}.cdx.json`,
  notes: "release-notes.md",
  checksums: CHECKSUMS,
} as const;

export async function makeExecutables(directory: string): Promise<void> {
  for (const platform of ALL_PLATFORMS)
    await buildExecutable(
      join(directory, RELEASE_FILES.executable(platform)),
      currentCommit(),
      runtimeOf(platform),
    );
}

/** The packages, after the executables. */
export function makePackages(directory: string): void {
  for (const platform of ALL_PLATFORMS) {
    const executable = join(directory, RELEASE_FILES.executable(platform));
    makeDebianPackage(directory, platform, executable);
    makeRedHatPackage(directory, platform, executable);
  }
}

/** The image in one file, for `podman load`, so that everybody can push it to a registry of their own. */
async function makeImage(directory: string): Promise<void> {
  await buildExecutable(join(ROOT, "dist/petstore"), currentCommit());
  const tag = `petstore:${version}`;
  run(["podman", "build", "--format", "docker", "-f", "deploy/container/Containerfile", "-t", tag, "."]);
  run(["podman", "save", "--format", "oci-archive", "-o", join(directory, RELEASE_FILES.image), tag]);
}

export async function makeClientPackage(directory: string): Promise<void> {
  await Bun.write(join(directory, RELEASE_FILES.client), await clientArchive());
}

/** The bill of materials names what the executable contains, with the hashes of the lock file. */
export function makeBillOfMaterials(directory: string): void {
  const flags = ["--sbom-format", "cyclonedx", "--sbom-type", "application"];
  const bom = JSON.parse(run(["npm", "sbom", "--package-lock-only", "--omit", "dev", ...flags]));
  // npm writes the name of the directory.
  bom.metadata.component.name = packageJson.name;
  writeFileSync(join(directory, RELEASE_FILES.bom), `${JSON.stringify(bom, null, 2)}\n`);
}

/** The section of the changelog about this version. */
export function makeNotes(directory: string): void {
  const changelog = readFileSync(join(ROOT, "CHANGELOG.md"), "utf8");
  const section = changelog.split(/^(?=## )/m).find((text) => text.startsWith(`## ${version} `));
  if (section === undefined) throw new Error(`CHANGELOG.md has no section about ${version}`);
  writeFileSync(join(directory, RELEASE_FILES.notes), section.replace(/^## .*\n+/, ""));
}

/** Writes what `sha256sum --check SHA256SUMS` reads. */
export function makeChecksums(directory: string): void {
  const names = readdirSync(directory).filter((name) => name !== CHECKSUMS && name !== RELEASE_FILES.notes);
  const lines = names.toSorted().map((name) => {
    const hash = Bun.SHA256.hash(readFileSync(join(directory, name)), "hex");
    return `${hash}  ${name}\n`;
  });
  writeFileSync(join(directory, CHECKSUMS), lines.join(""));
}

interface Part {
  readonly programs: readonly string[];
  readonly makes: readonly ((directory: string) => void | Promise<void>)[];
}

const PARTS: Readonly<Record<string, Part>> = {
  platform: { programs: ["podman"], makes: [makeImage] },
  common: {
    programs: ["dpkg-deb", "rpmbuild"],
    makes: [makeExecutables, makePackages, makeClientPackage, makeBillOfMaterials, makeNotes],
  },
  checksums: { programs: [], makes: [makeChecksums] },
};

function fail(message: string, code: number): never {
  process.stderr.write(`release: ${message}\n`);
  process.exit(code);
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { outdir: { type: "string", default: join(ROOT, "dist/release") } },
  });
  const unknown = positionals.find((name) => !Object.hasOwn(PARTS, name));
  if (unknown !== undefined) fail(`"${unknown}" is none of ${Object.keys(PARTS).join(", ")}`, 2);
  const names = positionals.length === 0 ? Object.keys(PARTS) : positionals;
  const missing = names
    .flatMap((name) => PARTS[name]?.programs ?? [])
    .filter((program) => Bun.which(program) === null);
  if (missing.length > 0)
    fail(`missing programs: ${missing.join(", ")}; install them, or name the other parts`, 1);
  const directory = resolve(values.outdir);
  mkdirSync(directory, { recursive: true });
  for (const name of names) for (const make of PARTS[name]?.makes ?? []) await make(directory);
  for (const name of readdirSync(directory).toSorted())
    process.stdout.write(`${relative(process.cwd(), join(directory, name))}\n`);
}
