import { RawConnection } from "../../trials/harness/http-connection.ts";

/** Sends a text on a connection of its own, and gives the text of the response. */
export async function sendRaw(url: string, text: string): Promise<string> {
  const connection = new RawConnection(Number(new URL(url).port));
  await connection.write(text);
  const response = await connection.response(text.slice(0, text.indexOf(" ")));
  connection.socket.destroy();
  return response;
}
