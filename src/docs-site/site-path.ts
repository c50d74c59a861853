/**
 * The URL of a page relative to another, so that the site also works behind a proxy that serves it under a prefix.
 * Both paths begin with `/`; `to` may have a fragment.
 */
export function relativeUrl(from: string, to: string): string {
  const folders = from.split("/").slice(1, -1);
  const parts = to.split("/").slice(1);
  let shared = 0;
  while (shared < folders.length && shared < parts.length - 1 && folders[shared] === parts[shared]) shared++;
  const up = "../".repeat(folders.length - shared);
  const url = up + parts.slice(shared).join("/");
  return url === "" ? "./" : url;
}
