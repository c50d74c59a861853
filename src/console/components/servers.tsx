interface MissingServersProps {
  readonly servers: readonly { readonly name: string; readonly problem: string | null }[];
}

/** The servers whose requests are not shown, and why. */
export function MissingServers({ servers }: MissingServersProps) {
  return servers.flatMap(({ name, problem }) =>
    problem === null ? (
      []
    ) : (
      <p key={name} class="notice" role="status">
        Without the requests of <bdi>{name}</bdi>: {problem}.
      </p>
    ),
  );
}
