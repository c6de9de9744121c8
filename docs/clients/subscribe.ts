// Follow regressions, each handled once: BROKER=localhost:9092 npx tsx subscribe.ts
import { Kafka } from "kafkajs";
import { Seen, decode, show, type RegressionEvent } from "./event.ts";

async function main(): Promise<void> {
  const kafka = new Kafka({ brokers: (process.env.BROKER ?? "localhost:9092").split(",") });
  const consumer = kafka.consumer({ groupId: "my-team" });
  const seen = new Seen();
  await consumer.connect();
  await consumer.subscribe({ topic: "regressions", fromBeginning: true });
  await consumer.run({
    // An offset is committed after its message was handled: what a crash interrupts comes again.
    eachMessage: async ({ partition, message }) => {
      let event: RegressionEvent;
      try {
        event = decode(message.value?.toString() ?? "");
      } catch (error) {
        console.error(`partition ${partition} offset ${message.offset}: ${error}`);
        return;
      }
      seen.once(event.id, () => show(event));
    },
  });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
