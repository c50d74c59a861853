/** A request as a curl command: in the documentation and its forms, in the console and on the command line. */
interface CurlRequest {
  /** The method; by default GET without a body, and POST with one. */
  readonly method?: string;
  readonly url: string;
  /** The secret of an API key, or what a shell expands to it: `$KEY`. */
  readonly secret?: string;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
  /** Whether curl prints the status and the headers of the response too. */
  readonly showsHeaders?: boolean;
}

const LINE_BREAK = " \\\n  ";

/** Each header and the body are on lines of their own unless `separator` is a space. */
export function curlCommand(request: CurlRequest, separator = LINE_BREAK): string {
  const { url, secret, headers = [], body, showsHeaders = false } = request;
  const implied = body === undefined ? "GET" : "POST";
  const { method = implied } = request;
  const options = [
    ...(showsHeaders ? ["-i"] : []),
    ...(method === implied ? [] : [`-X ${method}`]),
    shellWord(url),
  ];
  const lines = [`curl ${options.join(" ")}`];
  if (secret !== undefined) lines.push(`-H "Authorization: Bearer ${secret}"`);
  for (const [name, value] of headers) lines.push(`-H ${shellWord(`${name}: ${value}`)}`);
  if (body !== undefined) lines.push(`-d ${shellWord(body)}`);
  return lines.join(separator);
}

const PLAIN = /^[\w./:-]+$/;
/** A shell expands nothing in such text between double quotes. */
const LITERAL = /^[^"$`\\!]*$/;

/** Quotes any text so that a shell reads it as one word. */
export function shellWord(text: string): string {
  if (PLAIN.test(text)) return text;
  return LITERAL.test(text) ? `"${text}"` : `'${text.replaceAll("'", "'\\''")}'`;
}
