package index

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/graph"
)

// texts holds the bodies of the items of a whole tree in a scratch file: they are the largest part of the inputs, and each
// is read only a few times. Restored strings are mapped from that file, and valid as long as texts is reachable.
type texts struct {
	file *os.File
	end  atomic.Int64
	mu   sync.Mutex
	gone []aside

	forget func() // releases the memory that reading used
}

// aside is a part whose bodies are in the file, one after the other.
type aside struct {
	items   []graph.Item
	lengths []int
	at      int64
}

// put moves the bodies of a part into the file. After a failed write the part keeps them.
func (t *texts) put(p graph.Part) {
	a := aside{items: p.Items, lengths: make([]int, len(p.Items))}
	size := 0
	for i := range p.Items {
		a.lengths[i] = len(p.Items[i].Body)
		size += a.lengths[i]
	}
	data := make([]byte, 0, size)
	for i := range p.Items {
		data = append(data, p.Items[i].Body...)
	}
	a.at = t.end.Add(int64(size)) - int64(size)
	if _, err := t.file.WriteAt(data, a.at); err != nil || size == 0 {
		return
	}
	for i := range p.Items {
		p.Items[i].Body = ""
	}
	t.mu.Lock()
	t.gone = append(t.gone, a)
	t.mu.Unlock()
}

// restore gives the items their bodies back, and closes the file.
func (t *texts) restore() error {
	data, forget, release, err := state.MapScratch(t.file)
	if err != nil {
		return err
	}
	t.forget = forget
	runtime.AddCleanup(t, func(release func()) { release() }, release)
	for _, a := range t.gone {
		body := data[a.at:]
		for i, n := range a.lengths {
			a.items[i].Body = unsafe.String(unsafe.SliceData(body), n)
			body = body[n:]
		}
	}
	t.gone = nil
	return t.file.Close()
}
