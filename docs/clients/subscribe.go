// Follow regressions, each handled once: BROKER=localhost:9092 go run subscribe.go event.go
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

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
			event, err := decode(record.Value)
			if err != nil {
				log.Printf("partition %d offset %d: %v", record.Partition, record.Offset, err)
				return
			}
			seen.once(event.ID, func() { show(os.Stdout, event) })
		})
		// Only now: what a crash interrupts comes again.
		if err := client.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
			log.Print(err)
		}
	}
}
