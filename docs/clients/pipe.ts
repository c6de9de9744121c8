// Show events, one a line of the standard input: smidgen events tail --json | npx tsx pipe.ts
import { createInterface } from "node:readline";
import { Seen, decode, show } from "./event.ts";

async function main(): Promise<void> {
  const seen = new Seen();
  let number = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    number += 1;
    try {
      const event = decode(line);
      seen.once(event.id, () => show(event));
    } catch (error) {
      console.error(`line ${number}: ${error}`);
    }
  }
}

main();
