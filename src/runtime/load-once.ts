import type { Awaitable } from "./awaitable.ts";

/** Loads a value at the first call and keeps it. After an error, the next call loads again. */
export function loadOnce<T>(load: () => Awaitable<T>): () => Awaitable<T> {
  return loadFor(() => undefined, load);
}

/** Loads a value as loadOnce does, and loads again when the key is another one than before. */
export function loadFor<K, T>(keyOf: () => K, load: (key: K) => Awaitable<T>): () => Awaitable<T> {
  let loaded: { readonly key: K; value: Awaitable<T> } | undefined;
  return () => {
    const key = keyOf();
    if (loaded !== undefined && loaded.key === key) return loaded.value;
    const loading = { key, value: load(key) };
    loaded = loading;
    if (loading.value instanceof Promise) {
      loading.value.then(
        (settled) => (loading.value = settled),
        () => (loaded = loaded === loading ? undefined : loaded),
      );
    }
    return loading.value;
  };
}
