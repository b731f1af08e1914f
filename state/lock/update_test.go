package lock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/state/proc"
)

func TestUpdate(t *testing.T) {
	root := openRoot(t)
	update := func(mutate func([]byte) ([]byte, error)) error {
		return Update(t.Context(), root, "d/f", Options{}, mutate)
	}
	if err := update(func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("a missing file is %q, want nil", old)
		}
		return nil, nil
	}); err != nil {
		t.Error(err)
	}
	if got := names(t, root); got != "" {
		t.Errorf("nothing was to be written: %s", got)
	}
	for range 2 {
		if err := update(appendLine("x")); err != nil {
			t.Error(err)
		}
	}
	failed := errors.New("not today")
	if err := update(func(old []byte) ([]byte, error) { return []byte("bad"), failed }); !errors.Is(err, failed) {
		t.Errorf("err = %v", err)
	}
	if data, err := root.ReadFile("d/f"); string(data) != "x\n" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if err := update(func([]byte) ([]byte, error) { return []byte{}, nil }); err != nil {
		t.Error(err)
	}
	if data, err := root.ReadFile("d/f"); len(data) != 0 || err != nil {
		t.Errorf("emptied: %q, %v", data, err)
	}
	if got := names(t, root); got != "d/f" {
		t.Errorf("left: %s", got)
	}
}

func TestEqualContentIsNotWritten(t *testing.T) {
	root := openRoot(t)
	put(t, root, "f", "x\n", time.Hour)
	before, err := root.Stat("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := Update(t.Context(), root, "f", Options{}, appendLine("x")); err != nil {
		t.Error(err)
	}
	if after, err := root.Stat("f"); err != nil || !os.SameFile(before, after) || after.ModTime() != before.ModTime() {
		t.Errorf("the file was written: %v, %v", after, err)
	}
}

// Somebody who does not keep to the lock writes between our reading and our writing. Neither update may be lost.
func TestUpdateRunsAgainWhenRobbed(t *testing.T) {
	root := openRoot(t)
	calls := 0
	err := Update(t.Context(), root, "f", Options{}, func(old []byte) ([]byte, error) {
		if calls++; calls == 1 {
			put(t, root, "f", "theirs\n", 0)
		}
		return appendLine("ours")(old)
	})
	if data, _ := root.ReadFile("f"); err != nil || calls != 2 || string(data) != "theirs\nours\n" {
		t.Errorf("%v after %d calls: %q", err, calls, data)
	}
	calls = 0
	err = Update(t.Context(), root, "f", Options{}, func(old []byte) ([]byte, error) {
		calls++
		put(t, root, "f", fmt.Sprintf("%stheirs %d\n", old, calls), 0)
		return appendLine("never")(old)
	})
	if data, _ := root.ReadFile("f"); !errors.Is(err, ErrStolen) || calls != defaultTries || strings.Contains(string(data), "never") {
		t.Errorf("%v after %d calls: %q", err, calls, data)
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("LOCK_TEST_WORKER"); dir != "" {
		fmt.Fprintln(os.Stderr, worker(dir, os.Getenv("LOCK_TEST_NAME")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// hasty are options with times a five hundredth of the real ones, so that old locks occur within seconds.
var hasty = Options{Stale: 60 * time.Millisecond, Backoff: 2 * time.Millisecond, Longest: 40 * time.Millisecond, Tries: 40}

// worker adds lines to a file until it is killed, and tells its parent of each one that is acknowledged.
func worker(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		line := fmt.Sprintf("%s-%d", name, i)
		err := Update(context.Background(), root, "f", hasty, appendLine(line))
		switch {
		case errors.Is(err, ErrBusy), errors.Is(err, ErrStolen): // not acknowledged
		case err != nil:
			return err
		default:
			fmt.Println(line)
		}
	}
}

// TestNothingIsLostUnderKill has real processes update one file while they are killed at random, and reads the file
// all the time.
func TestNothingIsLostUnderKill(t *testing.T) {
	if proc.Self().Tag == "" {
		t.Skip("this system does not tell processes apart")
	}
	root := openRoot(t)
	const workers, kills, perKill = 4, 40, 8
	acks := make(chan string)
	var wg sync.WaitGroup
	pids := make([]*os.Process, workers)
	start := func(i, life int) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "LOCK_TEST_WORKER="+root.Name(), fmt.Sprintf("LOCK_TEST_NAME=w%d.%d", i, life))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids[i] = cmd.Process
		wg.Go(func() { relay(out, acks); _ = cmd.Wait() })
	}
	for i := range workers {
		start(i, 0)
	}
	// Random, not seeded: real processes do not repeat themselves anyway.
	var acked []string
	last := 0
	for life := 1; life <= kills; life++ {
		for range perKill {
			acked = append(acked, <-acks)
			last = readWhole(t, root, last)
		}
		i := rand.IntN(workers)
		if err := pids[i].Kill(); err != nil {
			t.Fatal(err)
		}
		start(i, life)
	}
	for _, p := range pids {
		_ = p.Kill()
	}
	go func() { wg.Wait(); close(acks) }()
	for line := range acks {
		acked = append(acked, line)
	}
	data, err := root.ReadFile("f")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		have[strings.TrimSpace(line)] = true
	}
	lost := 0
	for _, line := range acked {
		if !have[line] {
			lost++
		}
	}
	t.Logf("%d kills, %d updates acknowledged, %d lost", kills, len(acked), lost)
	if lost != 0 {
		t.Errorf("%d of %d acknowledged updates were lost", lost, len(acked))
	}
	// The dead do not block the living, and leave nothing that stays.
	if err := Update(t.Context(), root, "f", Options{}, appendLine("end")); err != nil {
		t.Error(err)
	}
	for _, name := range strings.Fields(names(t, root)) {
		if strings.HasSuffix(name, ".lock") {
			t.Errorf("left: %s", name)
		}
	}
}

func relay(r io.Reader, to chan<- string) {
	for s := bufio.NewScanner(r); s.Scan(); {
		to <- s.Text()
	}
}

// readWhole is a reader that takes no lock: it must see whole lines, and never fewer than before.
func readWhole(t *testing.T, root *os.Root, last int) int {
	t.Helper()
	data, err := root.ReadFile("f")
	n := strings.Count(string(data), "\n")
	if err != nil || n < last || len(data) > 0 && data[len(data)-1] != '\n' {
		t.Errorf("a reader saw %d lines after %d, %v", n, last, err)
	}
	return n
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"pid":1,"timestamp":"2026-01-01T00:00:00Z","agent":"x"}`))
	f.Add([]byte("\ufeff{\"timestamp\":1767225600}"))
	f.Add([]byte(`{"timestamp":1e400,"pid":1e99,"start":-1,"guard":null}`))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := parseBody(data)
		if b.PID < 0 || b.Timestamp.Year() > 9999 {
			t.Errorf("%+v", b)
		}
		again := parseBody(b.encode())
		if again.PID != b.PID || again.Agent != strings.ToValidUTF8(b.Agent, "\ufffd") && again.Agent != b.Agent {
			t.Errorf("%+v became %+v", b, again)
		}
		_ = b.id().Gone()
	})
}
