import type { Awaitable } from "./awaitable.ts";

/** Loads a value at the first call and keeps it. After an error, the next call loads again. */
export function loadOnce<T>(load: () => Awaitable<T>): () => Awaitable<T> {
  return loadFor(() => undefined, load);
}

/** Loads a value as loadOnce does, and loads again when the version is another one than before. */
export function loadFor<Version, T>(
  currentVersion: () => Version,
  load: (version: Version) => Awaitable<T>,
): () => Awaitable<T> {
  let loaded: { readonly version: Version; value: Awaitable<T> } | undefined;
  return () => {
    const version = currentVersion();
    if (loaded !== undefined && loaded.version === version) return loaded.value;
    const loading = { version, value: load(version) };
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
