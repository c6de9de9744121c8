// Show events, one a line of the standard input: smidgen events tail --json | go run pipe.go event.go
package main

import (
	"bufio"
	"log"
	"os"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20) // an event has up to some megabytes
	seen := Seen{}
	for number := 1; lines.Scan(); number++ {
		event, err := decode(lines.Bytes())
		if err != nil {
			log.Printf("line %d: %v", number, err)
			continue
		}
		seen.once(event.ID, func() { show(os.Stdout, event) })
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}
