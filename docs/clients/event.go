// Events and what is shown of them, by the standard library alone; pipe.go and subscribe.go bring them.
//
// Fields are those of docs/schemas/regression-*.json; what is not needed is left out.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// decode returns the event of a message.
func decode(value []byte) (Event, error) {
	var event Event
	if err := json.Unmarshal(value, &event); err != nil {
		return event, err
	}
	if event.ID == "" || event.Type == "" {
		return event, errors.New("no event")
	}
	return event, nil
}

// Seen remembers ids. Keep them where the work is kept, in one transaction with it, to do it exactly once.
type Seen map[string]bool

func (seen Seen) once(id string, handle func()) {
	if !seen[id] {
		handle()
		seen[id] = true
	}
}

func show(out io.Writer, event Event) {
	switch event.Type {
	case "smidgen.regression.detected":
		data, size := event.Data, ""
		if data.Relative != nil {
			size = fmt.Sprintf(" (%+.1f%%)", *data.Relative*100)
		}
		if data.MetricKind == "service" { // in its own unit; all other kinds are shares of CPU
			fmt.Fprintf(out, "%s %s %+.4f%s\n", data.Service, data.Metric, data.Delta, size)
		} else {
			fmt.Fprintf(out, "%s %s %+.4f%% of CPU%s\n", data.Service, data.Metric, data.Delta*100, size)
		}
		for _, suspect := range data.RootCauses {
			fmt.Fprintf(out, "  %s by %s (%.2f)\n", suspect.Change.Title, suspect.Change.Author, suspect.Score)
		}
	case "smidgen.regression.updated":
		fmt.Fprintf(out, "%s has changed\n", event.Data.Regression)
	case "smidgen.regression.resolved":
		fmt.Fprintf(out, "%s is resolved\n", event.Data.Regression)
	}
}
