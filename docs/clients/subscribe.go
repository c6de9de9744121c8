// Follow regressions, each handled once: BROKER=localhost:9092 go run subscribe.go
//
// Fields are those of docs/schemas/regression-*.json; what is not needed is left out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

type Event struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Subject string `json:"subject"`
	Time    string `json:"time"`
	Data    Data   `json:"data"`
}

// Data of a detected event; an update and a resolution have Regression, the id of the detected one.
type Data struct {
	Service      string    `json:"service"`
	Metric       string    `json:"metric"`
	MetricKind   string    `json:"metric_kind"`
	ChangeTime   string    `json:"change_time"`
	Before       float64   `json:"before"`
	After        float64   `json:"after"`
	Delta        float64   `json:"delta"`
	Relative     *float64  `json:"relative"` // null for what did not exist before
	WasteServers *float64  `json:"waste_servers"`
	RootCauses   []Suspect `json:"root_causes"`
	Regression   string    `json:"regression"`
}

type Suspect struct {
	Change Change  `json:"change"`
	Score  float64 `json:"score"`
}

type Change struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Author string `json:"author"`
}

// Seen remembers ids. Keep them where the work is kept, in one transaction with it, to do it exactly once.
type Seen map[string]bool

func (seen Seen) once(id string, handle func()) {
	if !seen[id] {
		handle()
		seen[id] = true
	}
}

func main() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("BROKER"), ",")...),
		kgo.ConsumerGroup("my-team"),
		kgo.ConsumeTopics("regressions"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	seen := Seen{}
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		fetches.EachRecord(func(record *kgo.Record) {
			var event Event
			if err := json.Unmarshal(record.Value, &event); err != nil {
				log.Printf("partition %d offset %d: %v", record.Partition, record.Offset, err)
				return
			}
			seen.once(event.ID, func() { show(event) })
		})
		// Only now: what a crash interrupts comes again.
		if err := client.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
			log.Print(err)
		}
	}
}

func show(event Event) {
	switch event.Type {
	case "smidgen.regression.detected":
		fmt.Printf("%s %s +%.4f%%\n", event.Data.Service, event.Data.Metric, event.Data.Delta*100)
		for _, suspect := range event.Data.RootCauses {
			fmt.Printf("  %s by %s (%.2f)\n", suspect.Change.Title, suspect.Change.Author, suspect.Score)
		}
	case "smidgen.regression.updated":
		fmt.Printf("%s has changed\n", event.Data.Regression)
	case "smidgen.regression.resolved":
		fmt.Printf("%s is resolved\n", event.Data.Regression)
	}
}
