/** The flags that say where a server listens. */
interface ListenFlags {
  readonly host: string;
  readonly port: string;
}

export const LISTEN_FLAGS: ListenFlags = { host: "--host", port: "--port" };
export const ADMIN_LISTEN_FLAGS: ListenFlags = { host: "--admin-address", port: "--admin-address" };

/** The reasons why a server cannot listen, with remedies, by the code of the error. */
export function listenProblems({
  host,
  port,
}: ListenFlags): Readonly<Record<string, readonly [problem: string, remedy: string]>> {
  const noSuchHost = ["there is no such host", `see ${host}`] as const;
  return {
    EADDRINUSE: ["the port is in use", `stop the other program or choose another ${port}`],
    EADDRNOTAVAIL: ["this machine does not have that address", `see ${host}`],
    ENOTFOUND: noSuchHost,
    EINVAL: noSuchHost,
    EACCES: ["permission denied", `ports below 1024 need privileges, so choose another ${port}`],
  };
}
