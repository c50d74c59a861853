/* A thread that sends a request on a connection of its own, says so in shared memory, and posts what it receives. */

import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

const { port, isSent }: { port: number; isSent: Int32Array } = workerData;
let text = "";
const socket = connect(port, "127.0.0.1", () =>
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n", () => {
    Atomics.store(isSent, 0, 1);
    Atomics.notify(isSent, 0);
  }),
);
socket.on("data", (bytes) => void (text += bytes.toString()));
socket.on("error", (error) => void (text += String(error)));
socket.on("close", () => parentPort?.postMessage(text, []));
