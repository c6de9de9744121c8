// Events and what is shown of them, without a module; pipe.ts and subscribe.ts bring them.
//
// Fields are those of docs/schemas/regression-*.json; `json-schema-to-typescript` makes types of all of them.

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

export type RegressionEvent =
  | { id: string; time: string; type: "smidgen.regression.detected"; data: DetectedData }
  | { id: string; time: string; type: "smidgen.regression.updated"; data: UpdateData }
  | { id: string; time: string; type: "smidgen.regression.resolved"; data: UpdateData };

/** Return the event of a message; an error is thrown if it is none. */
export function decode(value: string): RegressionEvent {
  const event = JSON.parse(value) as RegressionEvent | null;
  if (!event?.id || !event.type) {
    throw new Error("no event");
  }
  return event;
}

/** Remember ids. Keep them where the work is kept, in one transaction with it, to do it exactly once. */
export class Seen {
  private readonly ids = new Set<string>();

  once(id: string, handle: () => void): void {
    if (!this.ids.has(id)) {
      handle();
      this.ids.add(id);
    }
  }
}

export function show(event: RegressionEvent): void {
  switch (event.type) {
    case "smidgen.regression.detected": {
      const { service, metric, metric_kind, delta, relative, root_causes } = event.data;
      const size = relative === null ? "" : ` (${signed(relative * 100, 1)}%)`;
      // A service-level metric is in its own unit; all other kinds are shares of CPU.
      const change = metric_kind === "service" ? signed(delta, 4) : `${signed(delta * 100, 4)}% of CPU`;
      console.log(`${service} ${metric} ${change}${size}`);
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

function signed(value: number, digits: number): string {
  return `${value < 0 ? "" : "+"}${value.toFixed(digits)}`;
}
