/** Sends more requests than a key allows, and prints the figures as JSON: `PORTS KEY SECONDS`. */
import { measureFreeKey } from "./free-key-client.ts";

const [ports = "", key = "", seconds] = process.argv.slice(2);
const figures = await measureFreeKey({ ports: ports.split(",").map(Number), key, seconds: Number(seconds) });
process.stdout.write(`FIGURES ${JSON.stringify(figures)}\n`);
process.exit(0);
