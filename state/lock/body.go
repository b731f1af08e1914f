package lock

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/state/proc"
)

// maxBody is the maximum number of bytes of a lock file that are read. Those of reconcile have some 200 bytes.
const maxBody = 4 << 10

// stampLayout has a fixed width, so that Touch can overwrite it.
const stampLayout = "2006-01-02T15:04:05.000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// body is the content of a lock file. PID, Timestamp and Agent belong to the protocol, the others are reconcile's own.
type body struct {
	PID       int
	Timestamp time.Time // zero if missing or invalid
	Agent     string
	Nonce     string
	Guard     string    // proc.ID.Tag of the holder: holders with the same tag exclude each other by the guard
	Start     int64     // proc.ID.Start of the holder
	Since     time.Time // when the holder took the lock; zero if missing or invalid
	Doing     string    // what it did last, in a word or two; "" if it did not say
}

// doingWidth is the fixed width of Doing in the file, in bytes, so that it can be overwritten.
const doingWidth = 24

type wireBody struct {
	PID       int    `json:"pid"`
	Timestamp string `json:"timestamp"`
	Agent     string `json:"agent"`
	Nonce     string `json:"nonce"`
	Guard     string `json:"guard,omitempty"`
	Start     int64  `json:"start,omitempty"`
	Since     string `json:"since,omitempty"`
	Doing     string `json:"doing,omitempty"`
}

func newBody(id proc.ID, agent string, now time.Time) body {
	return body{PID: id.PID, Timestamp: now, Agent: agent, Nonce: rand.Text(), Guard: id.Tag, Start: id.Start, Since: now}
}

// The keys of the values that are overwritten, each with a fixed width.
const (
	stampKey = `"timestamp":"`
	doingKey = `"doing":"`
)

func padded(doing string) string { return fmt.Sprintf("%-*.*s", doingWidth, doingWidth, doing) }

func (b body) encode() []byte {
	data, err := json.Marshal(wireBody{b.PID, stamp(b.Timestamp), b.Agent, b.Nonce, b.Guard, b.Start, stamp(b.Since),
		padded(b.Doing)})
	if err != nil { // strings and integers always encode
		panic(err)
	}
	return append(data, '\n')
}

// valueOffset finds the value of a key in the result of encode: within another value, a quotation mark has a backslash before it.
func valueOffset(data []byte, key string) int { return bytes.Index(data, []byte(key)) + len(key) }

// parseBody reads any program's lock file, field by field: an invalid field leaves its zero value, and so does a file
// that is not a JSON object.
func parseBody(data []byte) body {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var raw map[string]json.RawMessage
	if json.Unmarshal(data, &raw) != nil {
		return body{}
	}
	var b body
	for key, to := range map[string]*string{"agent": &b.Agent, "nonce": &b.Nonce, "guard": &b.Guard} {
		_ = json.Unmarshal(raw[key], to)
	}
	if pid := number(raw["pid"]); pid > 0 && pid <= math.MaxInt32 {
		b.PID = int(pid)
	}
	_ = json.Unmarshal(raw["start"], &b.Start)
	b.Timestamp, b.Since = parseLockTime(raw["timestamp"]), parseLockTime(raw["since"])
	_ = json.Unmarshal(raw["doing"], &b.Doing)
	b.Doing = strings.TrimRight(b.Doing, " ")
	return b
}

// parseLockTime reads RFC 3339 or a number of seconds or milliseconds since 1970, quoted or not.
func parseLockTime(raw json.RawMessage) time.Time {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if t, err := time.Parse(time.RFC3339, strings.TrimSpace(s)); err == nil {
			return t
		}
	}
	n := number(raw)
	switch {
	case !(n > 0) || n > 1e14:
		return time.Time{}
	case n > 1e11: // as seconds, the year 5138
		return time.UnixMilli(int64(n))
	}
	return time.UnixMilli(int64(n * 1000))
}

// number reads a JSON number, quoted or not; 0 if invalid.
func number(raw json.RawMessage) float64 {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `" `), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// id returns the holder, if it is a reconcile process.
func (b body) id() proc.ID { return proc.ID{Tag: b.Guard, PID: b.PID, Start: b.Start} }

// age returns 0 if the age is not known.
func (b body) age(now time.Time) time.Duration {
	if b.Timestamp.IsZero() {
		return 0
	}
	return max(0, elapsed(b.Timestamp, now))
}
