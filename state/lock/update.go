package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
)

// Update changes the file at path under its lock: mutate gets the content, nil if there is no file, and returns the new one.
// Equal content, or nil, is not written. What is written is durable before the lock is released.
//
// mutate runs again, on what the file is by then, whenever the lock was lost; so it must be a pure function that finds
// what it added before (an upsert). An error of mutate leaves the file as it is and is returned. nil is returned only after
// a write and a release that nobody interfered with.
func Update(ctx context.Context, root *os.Root, path string, o Options, mutate func(old []byte) ([]byte, error)) error {
	acquire := func() (*Lock, error) { return Acquire(ctx, root, path, o) }
	return update(o.withDefaults().Tries, acquire, mutate)
}

func update(tries int, acquire func() (*Lock, error), mutate func([]byte) ([]byte, error)) error {
	var stolen error
	for range tries {
		l, err := acquire()
		if err != nil {
			return err
		}
		err = errors.Join(l.change(mutate), l.Release())
		if !errors.Is(err, ErrStolen) {
			return err
		}
		stolen = err
	}
	return fmt.Errorf("%w: gave up after %d tries; other programs do not keep to the lock", stolen, tries)
}

func (l *Lock) change(mutate func([]byte) ([]byte, error)) error {
	old, err := l.Read()
	if err != nil {
		return err
	}
	data, err := mutate(old)
	if err != nil || data == nil || old != nil && bytes.Equal(old, data) {
		return err
	}
	s, err := l.disk.stage(data)
	if err != nil {
		return err
	}
	defer s.Discard()
	if err := l.Check(); err != nil {
		return err
	}
	return s.Commit()
}
