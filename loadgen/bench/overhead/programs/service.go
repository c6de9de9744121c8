// Answers each request on standard input, a blank line ends one, as service.py does.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

const threadCPUTime = 3

var spent [2]int64
var sink int

func now() int64 {
	var time syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&time)), 0)
	return time.Nano()
}

//go:noinline
func total() {
	own := 0
	for i := 0; i < 100000; i++ {
		own ^= i
	}
	sink = own
}

//go:noinline
func taxes() {
	own := 0
	for i := 0; i < 300000; i++ {
		own ^= i
	}
	sink = own
}

//go:noinline
func handle(times int) {
	start := now()
	for i := 0; i < times; i++ {
		total()
	}
	middle := now()
	taxes()
	spent[0] += middle - start
	spent[1] += now() - middle
	fmt.Printf("spent %d %d\n", spent[0], spent[1])
}

func main() {
	runtime.LockOSThread()
	lines := bufio.NewScanner(os.Stdin)
	times := 1
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "GET /more") {
			times = 9
		} else if lines.Text() == "" {
			handle(times)
			times = 1
		}
	}
}
