package runner

import "sync"

// roster lists the live processes. Runs that end while one list is made share the next one: hundreds of runs that end together cost
// a few lists, and each of them gets one that was begun after it asked.
type roster struct {
	one  sync.Mutex // held while a list is made
	mu   sync.Mutex
	next *roll // the list that is not begun yet; nil if it was not requested
}

// roll is one list.
type roll struct {
	made chan struct{} // closed when all is known
	all  []member
}

// look returns the processes that live now.
func (r *roster) look() []member {
	mine, first := r.join()
	if first {
		r.one.Lock()
		defer r.one.Unlock()
		r.begin()
		mine.all = marked(processes())
		close(mine.made)
	}
	<-mine.made
	return mine.all
}

// join returns the list that is begun next; first says that the caller has to make it.
func (r *roster) join() (mine *roll, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first = r.next == nil; first {
		r.next = &roll{made: make(chan struct{})}
	}
	return r.next, first
}

// begin has those who ask from now on wait for another list.
func (r *roster) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = nil
}

// marked adds the chains of processes.
func marked(all []member) []member {
	for i := range all {
		all[i].chain = chainOf(all[i].pid)
	}
	return all
}
