/** Sends requests as a well-behaved client does, and prints the figures as JSON: `PORT KEY SECONDS`. */
import { measureGoodClient } from "./good-client.ts";

const [port, key = "", seconds] = process.argv.slice(2);
const figures = await measureGoodClient({ port: Number(port), key, seconds: Number(seconds) });
process.stdout.write(`FIGURES ${JSON.stringify(figures)}\n`);
process.exit(0);
