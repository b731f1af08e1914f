package runner

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
)

// TestLoad lets one of a group start whatever the load is, and others only as many as there was room for at the last look.
func TestLoad(t *testing.T) {
	const idle, loaded = 1e6, 1e-9
	for _, c := range []struct {
		name    string
		limit   float64
		running int
		want    bool
	}{
		{"an idle machine", idle, 1, true},
		{"a loaded machine", loaded, 1, false},
		{"a loaded machine where nothing runs", loaded, 0, true},
		{"no limit", 0, 1, true},
	} {
		r := &Runner{o: Options{Slots: 5}, used: map[string]int{"tasks": c.running}}
		r.closed = true // nothing is dispatched later
		if c.limit == loaded {
			r.load = load{next: time.Now().Add(time.Hour)} // as after a look at a loaded machine
		}
		if got := r.room([]settle.Group{{Name: "tasks", Load: c.limit}}); got != c.want {
			t.Errorf("%s: room is %v, want %v", c.name, got, c.want)
		}
	}
	if tasks, ok := busyTasks(); !ok || tasks < 0 {
		t.Errorf("%d other tasks run, known: %v", tasks, ok)
	}
	var waits []time.Duration
	l := load{}
	for range 3 {
		l.allows(loaded, func(d time.Duration) { waits = append(waits, d) })
		l.free--
	}
	if len(waits) < 2 || waits[0] > sampleLoad {
		t.Errorf("a loaded machine is looked at again after %v, want at most %v", waits, sampleLoad)
	}
}
