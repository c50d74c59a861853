import type { ApiKey } from "../../domain/api-keys.ts";
import type { FilteredKey } from "../../domain/key-filter.ts";
import { stateOf } from "../../domain/key-view.ts";

export interface KnownOfKeys {
  /** By key, of those that are banned. */
  readonly bannedUntil: ReadonlyMap<number, number>;
  /** The keys with a hint that the search looks for. */
  readonly withHint: ReadonlySet<number>;
  readonly lastUsed: ReadonlyMap<number, number>;
  readonly now: number;
}

/** A key for a filter, which computes what the filter reads. */
export class FilteredApiKey implements FilteredKey {
  constructor(
    private readonly key: ApiKey,
    private readonly known: KnownOfKeys,
  ) {}

  get id() {
    return this.key.id;
  }

  get name() {
    return this.key.name;
  }

  get owner() {
    return this.key.owner ?? null;
  }

  get labels() {
    return this.key.labels;
  }

  get plan() {
    return this.key.plan;
  }

  get access() {
    return this.key.access;
  }

  get state() {
    const { key, known } = this;
    return stateOf(key, known.bannedUntil.has(key.id), known.now);
  }

  hasHint(): boolean {
    return this.known.withHint.has(this.key.id);
  }

  get usedAt() {
    return this.known.lastUsed.get(this.key.id) ?? this.key.createdAt;
  }
}
