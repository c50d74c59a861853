/*
 * Checks deploy/kubernetes against the types of the Kubernetes API: `npm run check:deploy`. The types are installed
 * into a temporary directory, because nothing else needs them. The test suite checks everything else in deploy/.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { run } from "../trials/compatibility/tools.ts";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";

const TYPES = "kubernetes-types@1.30.0";
const MANIFESTS = ["petstore.yaml", "limits.yaml"].map((name) =>
  resolve(import.meta.dir, "../deploy/kubernetes", name),
);

/** The modules with the types, by kind. */
const MODULES: Readonly<Record<string, string>> = {
  Namespace: "core/v1",
  ConfigMap: "core/v1",
  Service: "core/v1",
  Deployment: "apps/v1",
  Job: "batch/v1",
  PodDisruptionBudget: "policy/v1",
  NetworkPolicy: "networking/v1",
};

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/**
 * Makes a program from the manifests. Another kind of document, or a field that the API lacks, is an error of types.
 */
function program(manifests: readonly Manifest[]): string {
  return manifests
    .map((manifest, index) => {
      const { kind } = manifest;
      const from = MODULES[kind];
      if (from === undefined) throw new Error(`there is no type for ${kind}; add its module to MODULES`);
      return `import type { ${kind} as Kind${index} } from "kubernetes-types/${from}";
export const manifest${index}: Kind${index} = ${JSON.stringify(manifest, null, 2)};
`;
    })
    .join("\n");
}

const directory = temporaryDirectory("check-deploy");
const manifests = MANIFESTS.flatMap(
  (path) => Bun.YAML.parse(readFileSync(path, "utf8")) as Manifest | Manifest[],
);
const settings = { compilerOptions: { strict: true, noEmit: true }, include: ["*.ts"] };
writeFileSync(join(directory, "package.json"), '{"private":true}');
writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(settings));
writeFileSync(join(directory, "manifests.ts"), program(manifests));
await run(["npm", "install", "--no-save", "--ignore-scripts", TYPES], { cwd: directory });
await run([process.execPath, "check"], { cwd: directory });
const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
process.stdout.write(`valid for the API of Kubernetes 1.30: ${names.join(", ")}\n`);
process.exit(0);
