package main

import (
	"os"
	"syscall"
)

// peakMemory is the largest resident memory of an ended process, in bytes. Linux counts in KiB.
func peakMemory(p *os.ProcessState) int64 {
	if r, ok := p.SysUsage().(*syscall.Rusage); ok {
		return r.Maxrss * 1024
	}
	return 0
}
