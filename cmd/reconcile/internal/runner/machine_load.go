package runner

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"strconv"
	"time"
)

// sampleLoad is the time between two looks at the load of the machine.
const sampleLoad = time.Second

// load says how many more effects may start before the machine is as loaded as a limit allows. It looks at the machine once a second,
// and lets as many start until the next look as there was room for: new processes do not show in the load yet. The
// zero value is ready.
type load struct {
	next time.Time // when to look again
	free int       // how many may still start until then
}

// allows reports whether another effect may start while at most limit tasks run or wait for each processor. If not, it calls later with
// the time until the next look. Where the load is not known, it always may.
func (l *load) allows(limit float64, later func(time.Duration)) bool {
	now := time.Now()
	if !now.Before(l.next) {
		tasks, ok := busyTasks()
		if !ok {
			return true
		}
		l.next, l.free = now.Add(sampleLoad), int(math.Ceil(limit*float64(runtime.NumCPU())))-tasks
	}
	if l.free <= 0 {
		later(l.next.Sub(now))
		return false
	}
	return true
}

// busyTasks returns how many other tasks of the machine run or wait for a processor, as Linux says in /proc/loadavg.
func busyTasks() (int, bool) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(text)
	if len(fields) < 4 {
		return 0, false
	}
	running, _, _ := bytes.Cut(fields[3], []byte("/"))
	n, err := strconv.Atoi(string(running))
	return n - 1, err == nil // this thread is one
}

// dispatchLater starts what can start after a wait, once for any number of calls. It requires r.mu.
func (r *Runner) dispatchLater(wait time.Duration) {
	if r.waits || r.closed {
		return
	}
	r.waits = true
	time.AfterFunc(wait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waits = false
		r.dispatch()
	})
}
