// Follow regressions, each handled once: BROKER=localhost:9092 npx tsx subscribe.ts
//
// Fields are those of docs/schemas/regression-*.json; `json-schema-to-typescript` makes types of all of them.
import { Kafka } from "kafkajs";

interface Change {
  id: string;
  title: string;
  author: string;
}

interface Suspect {
  change: Change;
  score: number;
}

interface DetectedData {
  service: string;
  metric: string;
  metric_kind: "subroutine" | "endpoint" | "metadata" | "service";
  change_time: string;
  before: number;
  after: number;
  delta: number;
  relative: number | null; // null for what did not exist before
  waste_servers: number | null;
  root_causes: Suspect[];
}

interface UpdateData {
  service: string;
  metric: string;
  regression: string; // id of the detected event
  level: number;
  share_remaining: number;
}

type RegressionEvent =
  | { id: string; time: string; type: "smidgen.regression.detected"; data: DetectedData }
  | { id: string; time: string; type: "smidgen.regression.updated"; data: UpdateData }
  | { id: string; time: string; type: "smidgen.regression.resolved"; data: UpdateData };

// Keep ids where the work is kept, in one transaction with it, to do it exactly once.
const seen = new Set<string>();

function show(event: RegressionEvent): void {
  switch (event.type) {
    case "smidgen.regression.detected": {
      const { service, metric, delta, root_causes } = event.data;
      console.log(`${service} ${metric} +${(delta * 100).toFixed(4)}%`);
      for (const { change, score } of root_causes) {
        console.log(`  ${change.title} by ${change.author} (${score.toFixed(2)})`);
      }
      break;
    }
    case "smidgen.regression.updated":
      console.log(`${event.data.regression} has changed`);
      break;
    case "smidgen.regression.resolved":
      console.log(`${event.data.regression} is resolved`);
      break;
  }
}

async function main(): Promise<void> {
  const kafka = new Kafka({ brokers: (process.env.BROKER ?? "localhost:9092").split(",") });
  const consumer = kafka.consumer({ groupId: "my-team" });
  await consumer.connect();
  await consumer.subscribe({ topic: "regressions", fromBeginning: true });
  await consumer.run({
    // An offset is committed after its message was handled: what a crash interrupts comes again.
    eachMessage: async ({ message }) => {
      const event = JSON.parse(message.value?.toString() ?? "null") as RegressionEvent | null;
      if (event && !seen.has(event.id)) {
        show(event);
        seen.add(event.id);
      }
    },
  });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
