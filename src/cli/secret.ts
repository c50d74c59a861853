/** How a new secret is shown: once, on a line of its own, easy to copy. */
export function shownOnce(secret: string, url: string | undefined): string {
  const trial =
    url === undefined
      ? "A server on --port 0 says at its start where to try it."
      : `Try it:\n\n  ${curlLine(secret, url)}`;
  return `
  ${secret}

It will not be shown again: only a hash of it is kept. ${trial}
`;
}

export function curlLine(secret: string, url: string): string {
  return `curl -i -H 'Authorization: Bearer ${secret}' ${shellWord(`${url}/pets`)}`;
}

/** Whatever an address holds, a shell takes it as one plain word. */
export function shellWord(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
