/** How a new secret is shown: once, on a line of its own, easy to copy. */
export function shownOnce(secret: string, url: string): string {
  return `
  ${secret}

It will not be shown again: only a hash of it is kept. Try it:

  ${curlLine(secret, url)}
`;
}

export function curlLine(secret: string, url: string): string {
  return `curl -i -H 'Authorization: Bearer ${secret}' ${shellWord(`${url}/pets`)}`;
}

/** Whatever an address holds, a shell takes it as one plain word. */
export function shellWord(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
