/* The files that an import reads and an export writes. */

import { closeSync, fstatSync, readSync, type Stats, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../runtime/message-of.ts";
import { createFile, disk, openToRead, removeFile, renameDurably, statOf } from "../runtime/own-files.ts";
import { InputError } from "./row-reader.ts";

/** A file to import. Standard input is copied to a file first, because it is read twice. */
export interface InputFile extends Disposable {
  /** The size of the file in bytes, compressed or not. */
  readonly size: number;
  /** The SHA-256 of the file. */
  readonly fingerprint: string;
  /** The text in pieces, from the beginning. `onRead` gets the number of bytes of the file that were read so far. */
  texts(onRead: (bytes: number) => void): AsyncGenerator<string>;
}

const PIECE_BYTES = 256 * 1024;

/** Opens a file, or `standardInput` if the path is -. */
export async function openInput(
  path: string,
  standardInput: () => AsyncIterable<Uint8Array>,
): Promise<InputFile> {
  const descriptor = path === "-" ? await copyOf(standardInput()) : openFile(path);
  const { size } = fstatSync(descriptor);
  const fingerprint = fingerprintOf(descriptor);
  return {
    size,
    fingerprint,
    texts: (onRead) => texts(descriptor, fingerprint, onRead),
    [Symbol.dispose]: () => closeSync(descriptor),
  };
}

/** Opens a regular file. */
function openFile(path: string): number {
  const stats: Stats | undefined = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new InputError("there is no such file");
  if (stats.isDirectory()) throw new InputError("it is a directory");
  if (!stats.isFile()) throw new InputError("it is not a regular file; pipe it into petstore import -");
  return openToRead(path);
}

/** Copies standard input to a file. The file has no name, so nothing remains after the process, however it ends. */
async function copyOf(bytes: AsyncIterable<Uint8Array>): Promise<number> {
  const path = join(tmpdir(), `petstore-import-${crypto.randomUUID()}`);
  const descriptor = createFile(path);
  removeFile(path);
  const failure = `cannot copy standard input to ${tmpdir()}; TMPDIR can name a directory with more space`;
  for await (const piece of bytes) writeAll(descriptor, piece, failure);
  return descriptor;
}

export function writeAll(descriptor: number, bytes: Uint8Array, failure: string): void {
  try {
    for (let written = 0; written < bytes.length;) written += writeSync(descriptor, bytes, written);
  } catch (error) {
    throw new Error(failure, { cause: error });
  }
}

function fingerprintOf(descriptor: number): string {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const piece of pieces(descriptor)) hasher.update(piece);
  return hasher.digest("hex");
}

function* pieces(descriptor: number): Generator<Buffer> {
  let position = 0;
  for (;;) {
    const buffer = Buffer.allocUnsafe(PIECE_BYTES);
    const length = readSync(descriptor, buffer, 0, PIECE_BYTES, position);
    if (length === 0) return;
    position += length;
    yield buffer.subarray(0, length);
  }
}

async function* texts(
  descriptor: number,
  fingerprint: string,
  onRead: (bytes: number) => void,
): AsyncGenerator<string> {
  // The decoder removes a byte order mark.
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const decode = (piece?: Uint8Array) => {
    try {
      return piece ? decoder.decode(piece, { stream: true }) : decoder.decode();
    } catch {
      throw new InputError("it is not UTF-8; convert it first, for example with iconv");
    }
  };
  let read = 0;
  const hasher = new Bun.CryptoHasher("sha256");
  const counted = function* () {
    for (const piece of pieces(descriptor)) {
      onRead((read += piece.length));
      hasher.update(piece);
      yield piece;
    }
  };
  for await (const piece of isGzip(descriptor) ? gunzip(counted()) : counted()) yield decode(piece);
  // If the file changed, its rows are not those of the fingerprint, so the import must not count as complete.
  if (hasher.digest("hex") !== fingerprint) throw new InputError("it changed while it was read");
  yield decode();
}

function isGzip(descriptor: number): boolean {
  const magic = Buffer.alloc(2);
  readSync(descriptor, magic, { position: 0 });
  return magic.readUInt16BE() === 0x1f8b;
}

/** The modules of streams and of gzip are loaded when they are used, because that takes 15 ms. */
async function* gunzip(compressed: Iterable<Buffer>): AsyncGenerator<Uint8Array> {
  const { Readable } = process.getBuiltinModule("node:stream");
  const { createGunzip } = process.getBuiltinModule("node:zlib");
  const stream = Readable.from(compressed).pipe(createGunzip({ chunkSize: PIECE_BYTES }));
  try {
    yield* stream;
  } catch (error) {
    const reason = messageOf(error);
    throw new InputError(`its gzip data is incomplete or damaged (${reason})`, { cause: error });
  }
}

/** The destination of an export. */
export interface Output {
  write(data: string | Uint8Array): Promise<void>;
  /** Completes the output after everything is written. */
  finish(): void;
  /** Closes the output after `finish` or after a failure. */
  close(): void;
}

/**
 * Opens a file that appears, or replaces an earlier one, when it is complete. Until then the data is in a file next to
 * it, which only its owner can read. The next export overwrites what a killed one leaves there. Devices and pipes are
 * rejected, because the export would replace them.
 */
export function fileOutput(path: string): Output {
  const earlier = statSync(path, { throwIfNoEntry: false });
  if (earlier?.isDirectory()) throw new Error(`${path} is a directory; name a file in it`);
  if (earlier && !earlier.isFile()) {
    throw new Error(`${path} is not a regular file; leave FILE out and redirect standard output to it`);
  }
  const partial = `${path}.partial`;
  removeFile(partial);
  const descriptor = createFile(partial);
  const own = fstatSync(descriptor).ino;
  // Whether the partial file has its final name, or a later export to the same file has replaced it.
  const isReplaced = () => statOf(partial)?.ino !== own;
  return {
    async write(data) {
      const bytes = typeof data === "string" ? Buffer.from(data) : data;
      writeAll(descriptor, bytes, `cannot write ${partial}`);
    },
    finish() {
      disk.sync(descriptor);
      if (isReplaced())
        throw new Error(`another export to ${path} has begun meanwhile; ${path} will be its result`);
      renameDurably(partial, path);
    },
    close() {
      if (!isReplaced()) removeFile(partial);
      closeSync(descriptor);
    },
  };
}
