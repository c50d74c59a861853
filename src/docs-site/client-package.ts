import { version } from "../../package.json" with { type: "json" };
import { Rejection } from "../api/errors.ts";
import { conditional, IMMUTABLE_CACHE_CONTROL } from "../api/content-encoding.ts";
import { headerLinesOf, NO_STORE } from "../api/responses.ts";
import { loadClientFiles, loadClientReleases } from "../browser-bundle/bundle.ts";
import { CLIENT_PACKAGE_PATH } from "../domain/paths.ts";
import { rejectionResponse } from "../public/responses.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { siteUrl } from "../public/site-urls.ts";
import type { DocsPages } from "../public/static-routes.ts";
import { relativeUrl } from "./links.ts";
import { CLIENT_PATH, clientPath } from "./page-data.ts";

/** The client library as a file for `npm install`. */
export async function clientArchive(): Promise<Uint8Array<ArrayBuffer>> {
  return Bun.gzipSync(tarOf(await loadClientFiles()));
}

/**
 * Serves the package of this release and those of earlier ones, so that lockfiles that name them stay valid. A path
 * with another release says which there are.
 */
export async function clientPackage({ baseUrl }: DocumentedSettings): Promise<DocsPages["respond"]> {
  const archives = { ...loadClientReleases(), [version]: await clientArchive() };
  const files = new Map(
    Object.entries(archives).map(([release, body]) => [clientPath(release), fileOf(body)]),
  );
  const location = headerLinesOf({ Location: relativeUrl(CLIENT_PACKAGE_PATH, CLIENT_PATH) });
  const releases = Object.keys(archives).toSorted(Bun.semver.order).join(", ");
  const message = `This server has the client library of ${releases}: npm install ${siteUrl(baseUrl, CLIENT_PATH)}`;
  const otherRelease = new Rejection("not_found", message);
  // npm shows this header, and not the body.
  const otherReleaseLines = headerLinesOf({ "npm-notice": message }) + NO_STORE;

  return (request, headerLines) => {
    const file = files.get(request.path);
    if (file !== undefined) {
      const { etag, lines, body } = file;
      return conditional(request, etag, { status: 200, headerLines: lines + headerLines, body });
    }
    if (request.path === CLIENT_PACKAGE_PATH)
      return { status: 302, headerLines: location + headerLines, body: "" };
    return rejectionResponse(otherRelease, otherReleaseLines + headerLines);
  };
}

function fileOf(body: Uint8Array<ArrayBuffer>) {
  const etag = `"${Bun.SHA256.hash(body, "hex").slice(0, 32)}"`;
  const lines = headerLinesOf({
    "Content-Type": "application/gzip",
    ETag: etag,
    "Cache-Control": IMMUTABLE_CACHE_CONTROL,
  });
  return { etag, lines, body };
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
