import type { Kind } from "./kinds.ts";

/** Addresses of engines may hold passwords, so what was given is never repeated in a message; see `secret`. */
function engineUrl(options: { schemes: readonly string[]; example: string }): Kind<string> {
  const { schemes, example } = options;
  return {
    placeholder: "URL",
    secret: true,
    expected: `an address such as ${example}`,
    read: (text) => {
      if (/\s/.test(text) || !URL.canParse(text)) return undefined;
      const { protocol, hostname } = new URL(text);
      return schemes.includes(protocol.slice(0, -1)) && hostname !== "" ? text : undefined;
    },
    write: (value) => value,
  };
}

export const postgresUrl = engineUrl({
  schemes: ["postgres", "postgresql"],
  example: "postgres://user:password@host:5432/database",
});

export const valkeyUrl = engineUrl({
  schemes: ["redis", "rediss"],
  example: "redis://host:6379 (rediss:// for TLS)",
});
