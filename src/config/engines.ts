import type { Kind } from "./kinds.ts";

/** Addresses of engines may hold passwords, so what was given is never repeated in a message; see `secret`. */
function engineUrl(options: { schemes: readonly string[]; path: RegExp; example: string }): Kind<string> {
  const { schemes, path, example } = options;
  return {
    placeholder: "URL",
    secret: true,
    expected: `an address such as ${example}`,
    read: (text) => {
      const url = /\s/.test(text) ? null : URL.parse(text);
      if (url === null || url.hostname === "" || !schemes.includes(url.protocol.slice(0, -1)))
        return undefined;
      const isSound =
        path.test(url.pathname) && [url.username, url.password, url.pathname].every(isDecodable);
      return isSound ? text : undefined;
    },
    write: (value) => value,
    remark: (text) => (isDecodable(text) ? undefined : "a % in a user, password or database is written %25"),
  };
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

export const postgresUrl = engineUrl({
  schemes: ["postgres", "postgresql"],
  path: /^\/?[^/]*$/,
  example: "postgres://user:password@host:5432/database",
});

export const valkeyUrl = engineUrl({
  schemes: ["redis", "rediss"],
  // The number of a logical database.
  path: /^\/?\d{0,9}$/,
  example: "redis://host:6379 (rediss:// for TLS)",
});
