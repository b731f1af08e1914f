package secrets

import (
	"strings"
	"testing"
)

// clean is what agents write all day: 500 bytes without a secret, with words that could lead to one.
const clean = "Decision: keep the index beside the other caches, keyed by path and digest, because a key that is derived from " +
	"the content needs no invalidation. The token budget of an agent's start is 20,000 tokens: recall takes the best " +
	"observations first and stops before the limit. Access to the store goes through one interface, so another backend " +
	"can be added later. Errors name the file, the cause and the next step; the author of a change runs make test. " +
	"Rejected: a database, since nobody can read or review its files."

func BenchmarkClean(b *testing.B) {
	Find(clean)
	b.SetBytes(int64(len(clean)))
	b.ReportAllocs()
	for b.Loop() {
		if Redact(clean) != clean {
			b.Fatal("found something")
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newDetector()
	}
}

func BenchmarkLarge(b *testing.B) {
	text := strings.Repeat(clean+"\npassword = hunter2\napi_key: \"abc123def456ghi\"\n", 1<<20/(len(clean)+50))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Find(text)
	}
}
