package memory

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// conversation is one of about so many bytes, as JSON lines: a real session over and over, each time about other files.
func conversation(tb testing.TB, size int) []byte {
	data, err := os.ReadFile("testdata/session_claude.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.ReplaceAll(string(data), "store", fmt.Sprintf("store%d", i)))
	}
	return []byte(b.String())
}

func BenchmarkReadTranscript(b *testing.B) {
	data := conversation(b, 10<<20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readTranscript(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLearn(b *testing.B) {
	for _, size := range []int{50 << 10, 1 << 20, 10 << 20} {
		data := conversation(b, size)
		messages, err := ReadConversation(data)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				Learn(Source{Messages: messages})
			}
		})
	}
}

// BenchmarkLearnHostile reads texts that are made to take long.
func BenchmarkLearnHostile(b *testing.B) {
	const size = 1 << 20
	for name, unit := range map[string]string{"letters": "a", "dashes": "a-", "points": "a. ", "bullets": "- a b c\n", "quotes": "`",
		"nested": "  - decided on a\n", "same": "We decided on this. ", "tags": "<private>", "headings": "# a\n", "brackets": "[",
		"bars": "| a\n", "emoji": "👩‍👩‍👧‍👦", "spaces": " ", "paths": "a/b.go "} {
		text := strings.Repeat(unit, size/len(unit))
		raw, err := json.Marshal(map[string]string{"role": "assistant", "content": text})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				messages, _ := ReadConversation(raw)
				Learn(Source{Messages: messages, Exists: func(string) bool { return true }})
			}
		})
	}
}
