import { connect } from "node:net";

/** Sends bytes and returns everything that is received until the server closes the connection or `done` is true. */
export function sendRaw(
  url: string,
  bytes: string | Uint8Array,
  done: (text: string) => boolean = hasWholeResponse,
): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    const finish = () => (socket.destroy(), resolve(text));
    socket.setTimeout(
      30_000,
      () => (socket.destroy(), reject(new Error(`no response in 30 s; received: ${text}`))),
    );
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (done(text)) finish();
    });
    socket.on("error", reject);
    socket.on("close", finish);
  });
}

export function hasWholeResponse(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return false;
  const length = /content-length: (\d+)/i.exec(text.slice(0, end))?.[1];
  if (length === undefined) return true;
  return text.length >= end + 4 + Number(length);
}
