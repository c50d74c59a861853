/** The address that was asked for cannot be listened on. The cause is the error of the runtime. */
export class AdminListenError extends Error {
  override readonly name = "AdminListenError";

  constructor(
    readonly host: string,
    readonly port: number,
    cause: unknown,
  ) {
    super(`cannot listen for operators on ${host} port ${port}`, { cause });
  }
}
