/** Runs one attack until SIGTERM, or at most for the time given: `NAME HOST PORT KEY SECONDS`. */
import { ATTACKS } from "./attacks.ts";

const LOOPBACK = /^127\.\d+\.\d+\.\d+$/;

const [name, host = "", port, key = "", seconds] = process.argv.slice(2);
const attack = ATTACKS.find((attack) => attack.name === name);
if (attack === undefined) throw new Error(`${name} is no attack`);
if (!LOOPBACK.test(host)) throw new Error(`${host} is not a loopback address`);
const end = new AbortController();
process.on("SIGTERM", () => end.abort());
setTimeout(() => end.abort(), Number(seconds) * 1_000).unref();
const onReady = () => process.stdout.write("READY\n");
await attack.run({ host, port: Number(port), key }, end.signal, onReady);
process.exit(0);
