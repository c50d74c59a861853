import { conditional } from "../content-encoding.ts";
import { headerLinesOf } from "../api/dispatch.ts";
import { loadClientFiles } from "../browser-bundle/bundle.ts";
import { docsUrl, type DocumentedSettings, siteUrl } from "../petstore/documented-settings.ts";
import type { DocsPages } from "../petstore/static-routes.ts";
import { exampleContext, inContext } from "./examples.ts";
import { guidePath } from "./links.ts";

/** The client library as a file for `npm install`. Its links lead to the documentation of this server. */
export async function clientPackage(settings: DocumentedSettings): Promise<DocsPages["respond"]> {
  const { baseUrl } = settings;
  const files = { ...(await loadClientFiles()) };
  const homepage = siteUrl(baseUrl, guidePath("client-library"));
  files["package.json"] = JSON.stringify({ ...JSON.parse(files["package.json"] ?? ""), homepage }, null, 2);
  files["README.md"] = inContext(files["README.md"] ?? "", exampleContext(settings)).replaceAll(
    /(?<=\]\()\.\.\/\.\.\/docs\/([\w-]+)\.md/g,
    (_, guide) => `${docsUrl(baseUrl)}/${guide}`,
  );
  const body = Bun.gzipSync(tarOf(files));
  const etag = `"${Bun.SHA256.hash(body, "hex").slice(0, 32)}"`;
  const lines = headerLinesOf({
    "Content-Type": "application/gzip",
    ETag: etag,
    "Cache-Control": "public, max-age=300",
  });
  return (request, headerLines) =>
    conditional(request, etag, { status: 200, headerLines: lines + headerLines, body });
}

const BLOCK = 512;

/**
 * The same bytes for the same files: npm notes the hash of what it has installed, and all servers must have it.
 * `Bun.Archive` writes the time of day into its archives.
 */
function tarOf(files: Readonly<Record<string, string>>): Uint8Array<ArrayBuffer> {
  const entries = Object.entries(files).map(([name, text]) => {
    const content = Buffer.from(text);
    const padding = Buffer.alloc(-content.length & (BLOCK - 1));
    return Buffer.concat([tarHeader(`package/${name}`, content.length), content, padding]);
  });
  return Buffer.concat([...entries, Buffer.alloc(2 * BLOCK)]);
}

/** POSIX ustar: a file that everybody may read, owned by nobody, of 1970. */
function tarHeader(name: string, size: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  header.write(name, 0);
  header.write(`${octal(0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100);
  header.write(`${octal(size, 11)} ${octal(0, 11)} ${" ".repeat(8)}0`, 124);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return header;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}
