//go:build !linux

package main

import (
	"os"
	"time"
)

// mapVectors reads a file.
func mapVectors(path string) (data []byte, unmap func(), err error) {
	data, err = os.ReadFile(path)
	return data, func() {}, err
}

// forgetPages, residentMemory and processorTime are not known here.
func forgetPages([]byte, int) error { return nil }

func residentMemory() int64 { return 0 }

func processorTime() time.Duration { return 0 }

// threadTime is the time: that of a thread is not known here.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
