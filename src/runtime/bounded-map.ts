/** A map of at most `max` entries. One more evicts the entry that was set longest ago. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  constructor(private readonly max: number) {
    super();
  }

  /** Makes the entry the last one to be evicted, also if the map has the key. */
  override set(key: Key, value: Value): this {
    this.delete(key);
    if (this.size >= this.max) for (const oldest of this.keys().take(1)) this.delete(oldest);
    return super.set(key, value);
  }
}
