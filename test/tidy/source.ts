import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { projectFiles } from "../../trials/harness/project-files.ts";

/* The project's files as the tests of style and architecture read them. */

export const ROOT = resolve(import.meta.dir, "../..");
export const TREES = /^(?:src|test|bench|trials|scripts|docs)\//;

export interface File {
  /** The path from the root, with `/`. */
  readonly path: string;
  readonly text: string;
}

export const read = (path: string): File => ({ path, text: readFileSync(join(ROOT, path), "utf8") });
export const all = projectFiles();
export const paths = all.filter((path) => TREES.test(path));
export const code = paths.filter((path) => /\.(?:tsx?|js)$/.test(path)).map(read);
export const source = code.filter(({ path }) => path.startsWith("src/"));
export const pages = all.filter((path) => path.endsWith(".md") && !path.startsWith(".")).map(read);

/** Everything but comments, so that prose may speak of what code may not do. */
export const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/.*$/gm, "$1");

/** `file:line` of every line that the test picks. */
export function linesWhere(files: readonly File[], isAtFault: (line: string) => boolean): string[] {
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, i) => (isAtFault(line) ? [`${path}:${i + 1}: ${line.trim()}`] : [])),
  );
}

export interface Import {
  readonly from: string;
  /** A file from the root, or the name of a package. */
  readonly of: string;
}

const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*["']([^"'\n]+)["']/g;

export const allImports: readonly Import[] = code.flatMap(({ path, text }) =>
  [...withoutComments(text).matchAll(IMPORT)].map(([, name = ""]) => ({
    from: path,
    of: name.startsWith(".") ? relative(ROOT, resolve(ROOT, dirname(path), name)) : name,
  })),
);
export const imports = allImports.filter(({ from }) => from.startsWith("src/"));
