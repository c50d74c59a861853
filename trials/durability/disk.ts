import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Random } from "../harness/random.ts";
import type { SystemCall } from "./trace.ts";

type Change = { readonly at: number; readonly bytes: Buffer } | { readonly length: number };

/** A file or a directory, whatever its names are. */
class Inode {
  bytes = Buffer.alloc(0);
  /** The contents that survive a power failure. */
  durable = Buffer.alloc(0);
  /** The changes since they waited for the disk, with the place of each in the trace. */
  pending: { readonly change: Change; readonly endedAt: number }[] = [];

  constructor(readonly isDirectory: boolean) {}

  change(change: Change, endedAt: number): void {
    this.bytes = changed(this.bytes, change);
    this.pending.push({ change, endedAt });
  }

  /** What was written before the call began is on the disk when it has ended. */
  sync(startedAt: number): void {
    for (const { change, endedAt } of this.pending)
      if (endedAt <= startedAt) this.durable = changed(this.durable, change);
    this.pending = this.pending.filter(({ endedAt }) => endedAt > startedAt);
  }
}

function changed(bytes: Buffer<ArrayBuffer>, change: Change): Buffer<ArrayBuffer> {
  const length = "length" in change ? change.length : Math.max(bytes.length, change.at + change.bytes.length);
  const result = bytes.length === length ? bytes : Buffer.concat([bytes], length);
  const own = result === bytes ? Buffer.from(bytes) : result;
  if ("bytes" in change) change.bytes.copy(own, change.at);
  return own;
}

type Names = Map<string, Inode>;
interface NameChange {
  readonly directory: string;
  readonly apply: (names: Names) => void;
}

interface OpenFile {
  readonly inode: Inode;
  readonly path: string;
  readonly appends: boolean;
  position: number;
}

const SECTOR = 512;

/**
 * The files below a directory, as a process has changed them, and as a power failure leaves them: what was not synced
 * may be lost, the names of files too until their directory is synced. The log's index (-shm), which SQLite maps, is
 * left out.
 */
export class Disk {
  readonly #names: Names = new Map();
  #durable: Names = new Map();
  #pending: NameChange[] = [];
  readonly #open = new Map<number, OpenFile>();
  /** How often something has changed. */
  changes = 0;

  constructor(readonly root: string) {
    this.#load(root);
    this.#durable = new Map(this.#names);
  }

  #load(path: string): void {
    const inode = new Inode(statSync(path).isDirectory());
    this.#names.set(path, inode);
    if (inode.isDirectory) for (const name of readdirSync(path)) this.#load(join(path, name));
    else inode.bytes = inode.durable = Buffer.from(readFileSync(path));
  }

  apply({ name, args, result, startedAt, endedAt }: SystemCall): void {
    const number = (index: number) => Number.parseInt(String(args[index] ?? ""), 10);
    const texts = args.filter((each) => Buffer.isBuffer(each));
    const path = (index: number) => texts[index]?.toString() ?? "";
    const file = this.#open.get(number(0));
    switch (name) {
      case "openat":
      case "open":
      case "creat":
        return this.#opened(path(0), args.join(), result);
      case "close":
        return void this.#open.delete(number(0));
      case "dup":
      case "dup2":
      case "dup3":
        return this.#duplicated(number(0), result);
      case "fcntl":
        return String(args[1]).startsWith("F_DUPFD") ? this.#duplicated(number(0), result) : undefined;
      case "lseek":
        if (file) file.position = result;
        return;
      case "write":
      case "writev":
        return file && this.#write(file, Buffer.concat(texts).subarray(0, result), undefined, endedAt);
      case "pwrite64":
      case "pwritev":
      case "pwritev2":
        return file && this.#write(file, Buffer.concat(texts).subarray(0, result), offsetOf(args), endedAt);
      case "ftruncate":
        return file && this.#change(file.inode, { length: number(1) }, endedAt);
      case "fallocate": {
        const length = Math.max(file?.inode.bytes.length ?? 0, number(2) + number(3));
        return file && this.#change(file.inode, { length }, endedAt);
      }
      case "copy_file_range":
        return this.#copied(file, this.#open.get(number(2)), result, endedAt);
      case "sendfile":
        return this.#copied(this.#open.get(number(1)), file, result, endedAt);
      case "ioctl":
        if (args.join().includes("FICLONE")) this.#copied(this.#open.get(number(2)), file, Infinity, endedAt);
        return;
      case "fsync":
      case "fdatasync":
        return file && this.#synced(file, startedAt);
      case "rename":
      case "renameat":
      case "renameat2":
        return this.#renamed(path(0), path(1));
      case "link":
      case "linkat":
        return this.#named(path(1), this.#names.get(path(0)));
      case "unlink":
      case "unlinkat":
      case "rmdir":
        return this.#named(path(0), undefined);
      case "mkdir":
      case "mkdirat":
        return this.#named(path(0), new Inode(true));
      default:
        return;
    }
  }

  #opened(path: string, flags: string, descriptor: number): void {
    this.#open.delete(descriptor);
    if (!this.#isBelow(path)) return;
    if (!this.#names.has(path) && flags.includes("O_CREAT")) this.#named(path, new Inode(false));
    const inode = this.#names.get(path);
    if (inode === undefined) return;
    if (flags.includes("O_TRUNC") && inode.bytes.length > 0) this.#change(inode, { length: 0 }, 0);
    this.#open.set(descriptor, { inode, path, appends: flags.includes("O_APPEND"), position: 0 });
  }

  #isBelow(path: string): boolean {
    return (path === this.root || path.startsWith(`${this.root}/`)) && !path.endsWith("-shm");
  }

  #duplicated(from: number, to: number): void {
    const file = this.#open.get(from);
    if (file) this.#open.set(to, file);
    else this.#open.delete(to);
  }

  #write(file: OpenFile, bytes: Buffer, offset: number | undefined, endedAt: number): void {
    const at = offset ?? (file.appends ? file.inode.bytes.length : file.position);
    if (offset === undefined) file.position = at + bytes.length;
    this.#change(file.inode, { at, bytes }, endedAt);
  }

  #copied(from: OpenFile | undefined, to: OpenFile | undefined, length: number, endedAt: number): void {
    if (!from || !to || length === 0) return;
    const bytes = Buffer.from(from.inode.bytes.subarray(from.position, from.position + length));
    from.position += bytes.length;
    this.#write(to, bytes, undefined, endedAt);
  }

  #change(inode: Inode, change: Change, endedAt: number): void {
    this.changes++;
    inode.change(change, endedAt);
  }

  #synced({ inode, path }: OpenFile, startedAt: number): void {
    this.changes++;
    inode.sync(startedAt);
    if (!inode.isDirectory) return;
    for (const { directory, apply } of this.#pending) if (directory === path) apply(this.#durable);
    this.#pending = this.#pending.filter(({ directory }) => directory !== path);
  }

  #named(path: string, inode: Inode | undefined): void {
    if (!this.#isBelow(path)) return;
    this.#changeNames(dirname(path), (names) => (inode ? names.set(path, inode) : names.delete(path)));
  }

  #renamed(from: string, to: string): void {
    const inode = this.#names.get(from);
    if (inode === undefined) return;
    this.#changeNames(dirname(to), (names) => {
      names.delete(from);
      names.set(to, inode);
    });
  }

  #changeNames(directory: string, apply: NameChange["apply"]): void {
    this.changes++;
    apply(this.#names);
    this.#pending.push({ directory, apply });
  }

  /**
   * Writes what a power failure leaves now: what was synced alone (`least`), everything (`most`), or of what was not
   * synced whatever chance keeps: sectors of writes, and names up to some change of each directory.
   */
  writeTo(to: string, kept: "least" | "most" | Random): void {
    const chance = typeof kept === "string" ? undefined : kept;
    const names = kept === "most" ? this.#names : chance ? this.#someNames(chance) : this.#durable;
    for (const [path, inode] of [...names].toSorted(([a], [b]) => a.length - b.length)) {
      if (!hasParents(path, this.root, names)) continue;
      const target = join(to, path.slice(this.root.length));
      if (inode.isDirectory) mkdirSync(target, { recursive: true });
      else
        writeFileSync(target, kept === "most" ? inode.bytes : chance ? someOf(inode, chance) : inode.durable);
    }
  }

  #someNames(chance: Random): Names {
    const names = new Map(this.#durable);
    const stopped = new Set<string>();
    for (const { directory, apply } of this.#pending) {
      if (stopped.has(directory)) continue;
      if (chance.chance(3)) stopped.add(directory);
      else apply(names);
    }
    return names;
  }
}

function hasParents(path: string, root: string, names: Names): boolean {
  return path === root || (names.has(dirname(path)) && hasParents(dirname(path), root, names));
}

function someOf({ durable, pending }: Inode, chance: Random): Buffer {
  let bytes = durable;
  for (const { change } of pending) {
    if (chance.chance(2)) continue;
    const isTorn = "bytes" in change && change.bytes.length > SECTOR && chance.chance(4);
    const sectors = isTorn ? chance.below(Math.ceil(change.bytes.length / SECTOR)) : 0;
    bytes = changed(
      bytes,
      isTorn ? { ...change, bytes: change.bytes.subarray(0, sectors * SECTOR) } : change,
    );
  }
  return bytes;
}

/** The offset of a positioned write, which is the last number, or the one before the flags. */
function offsetOf(args: readonly (Buffer | string)[]): number {
  const numbers = args.filter((each): each is string => typeof each === "string" && /^\d+$/.test(each));
  return Number(numbers.at(-1));
}
