package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func TestMain(m *testing.M) {
	Main(os.Args)
	os.Exit(m.Run())
}

// hosts returns a host for each level that is available here.
func eachLevel(t *testing.T, f func(t *testing.T, h *Host, level string)) {
	h := NewHost(os.Getenv("PATH"))
	for _, level := range Levels {
		t.Run(level, func(t *testing.T) {
			if s := h.Support(level); s.Missing != "" {
				t.Skipf("%s is not available here: %s", level, s.Missing)
			}
			f(t, h, level)
		})
	}
}

// sh runs a shell script, confined, and returns its output.
func sh(t *testing.T, h *Host, p Policy, script string) error {
	t.Helper()
	_, err := h.run(p, "/bin/sh", []string{"sh", "-c", script})
	return err
}

// skipWithoutLandlock skips a test where the kernel has no Landlock that is new enough to limit connections.
func skipWithoutLandlock(t *testing.T) {
	if version := abi(); version < netABI {
		t.Skipf("Landlock of the kernel has version %d", version)
	}
}

// TestLandlockOfTheKernel tests that a kernel with Landlock confines: the probe finds nothing that fails.
func TestLandlockOfTheKernel(t *testing.T) {
	skipWithoutLandlock(t)
	if s := NewHost("").Support(schemas.SandboxLandlock); s.Missing != "" || !s.Network {
		t.Errorf("%+v", s)
	}
}

func TestWritesOnlyWhereGranted(t *testing.T) {
	eachLevel(t, func(t *testing.T, h *Host, level string) {
		dir := t.TempDir()
		mine, other := filepath.Join(dir, "mine"), filepath.Join(dir, "other")
		for _, d := range []string{mine, other} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		kept := filepath.Join(other, "kept")
		if err := os.WriteFile(kept, []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(other, filepath.Join(mine, "link")); err != nil {
			t.Fatal(err)
		}
		p := Policy{Level: level, Write: []string{mine}}
		if err := sh(t, h, p, "echo new > "+mine+"/file && mkdir "+mine+"/d && mv "+mine+"/file "+mine+"/d && cat "+kept+" > /dev/null"); err != nil {
			t.Errorf("what is granted fails: %v", err)
		}
		for _, script := range []string{"echo after > " + kept, "echo after >> " + kept, "rm " + kept, "mv " + kept + " " + mine, "ln " + kept + " " + mine + "/hard && echo x > " + mine + "/hard",
			"truncate -s 0 " + kept, "touch " + other + "/new", "echo x > " + mine + "/link/new", "chmod 777 " + kept + " && echo x > " + kept,
			"mount -o remount,rw,bind / && echo x > " + kept, "unshare -Urm sh -c 'mount -o remount,rw,bind / ; echo x > " + kept + "'",
			fmt.Sprintf("echo x > /proc/%d/root%s", os.Getpid(), kept), fmt.Sprintf("echo x > /proc/%d/cwd/escaped", os.Getpid())} {
			if err := sh(t, h, p, script+" && touch "+mine+"/escaped"); err == nil {
				t.Errorf("%s: not refused", script)
			}
		}
		got, err := os.ReadFile(kept)
		if err != nil || string(got) != "before" {
			t.Errorf("the other file is %q, %v", got, err)
		}
		for _, name := range []string{filepath.Join(mine, "escaped"), filepath.Join(other, "new")} {
			if _, err := os.Lstat(name); err == nil {
				t.Errorf("%s was written", name)
			}
		}
	})
}

func TestStartErrorsAreThoseOfTheProgram(t *testing.T) {
	eachLevel(t, func(t *testing.T, h *Host, level string) {
		dir := t.TempDir()
		p := Policy{Level: level, Write: []string{dir}}
		if _, err := h.run(p, filepath.Join(dir, "missing"), []string{"missing"}); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("a missing program: %v", err)
		}
		text := filepath.Join(dir, "text")
		if err := os.WriteFile(text, []byte("no program"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := h.run(p, text, []string{"text"}); !errors.Is(err, syscall.EACCES) {
			t.Errorf("a file that is no program: %v", err)
		}
		p.Write = []string{filepath.Join(dir, "absent")}
		if _, err := h.run(p, "/bin/true", []string{"true"}); err == nil {
			t.Error("a program was started although what it may write does not exist")
		}
	})
}

// TestOnlyTheProgramIsConfined tests that this process can write and connect as before, whatever it started.
func TestOnlyTheProgramIsConfined(t *testing.T) {
	eachLevel(t, func(t *testing.T, h *Host, level string) {
		dir := t.TempDir()
		errs := make(chan error)
		for i := range 32 {
			go func() {
				_, err := h.run(Policy{Level: level, Write: []string{"/dev/null"}}, "/bin/true", []string{"true"})
				errs <- errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
			}()
		}
		for range 32 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		for deadline := time.Now().Add(2 * time.Minute); confinedThreads(t) > 0; time.Sleep(time.Millisecond) { // they end after their goroutines
			if time.Now().After(deadline) {
				t.Fatal("threads of this process stay confined")
			}
		}
	})
}

// confinedThreads counts the threads of this process that can get no new privileges.
func confinedThreads(t *testing.T) (n int) {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) == 0 {
		t.Fatalf("%d threads: %v", len(threads), err)
	}
	for _, name := range threads {
		if status, err := os.ReadFile(name); err == nil && strings.Contains(string(status), "NoNewPrivs:\t1") {
			n++
		}
	}
	return n
}

func TestReadOnlyWhatIsGranted(t *testing.T) {
	eachLevel(t, func(t *testing.T, h *Host, level string) {
		dir := t.TempDir()
		mine, open, secret := filepath.Join(dir, "mine"), filepath.Join(dir, "open"), filepath.Join(dir, "secret")
		if err := errors.Join(os.Mkdir(mine, 0o755), os.WriteFile(open, []byte("open"), 0o644), os.WriteFile(secret, []byte("secret"), 0o644)); err != nil {
			t.Fatal(err)
		}
		p := Policy{Level: level, Write: []string{mine}, Read: []string{open}}
		if err := sh(t, h, p, "cat "+open+" > "+mine+"/copy && ls /usr/bin > /dev/null"); err != nil {
			t.Errorf("what is granted fails: %v", err)
		}
		if err := sh(t, h, p, "cat "+secret+" > "+mine+"/leak"); err == nil {
			t.Error("another file was read")
		}
		if leak, _ := os.ReadFile(filepath.Join(mine, "leak")); len(leak) > 0 {
			t.Errorf("it read %q", leak)
		}
	})
}

// TestWorkInSharedMemory tests that files beside the work are protected where both are in the folder that programs share.
func TestWorkInSharedMemory(t *testing.T) {
	dir, err := os.MkdirTemp(sharedMemory, "sandbox")
	if err != nil {
		t.Skipf("no file can be made in %s: %v", sharedMemory, err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	mine, beside := filepath.Join(dir, "mine"), filepath.Join(dir, "beside")
	if err := errors.Join(os.Mkdir(mine, 0o755), os.WriteFile(beside, []byte("before"), 0o644)); err != nil {
		t.Fatal(err)
	}
	eachLevel(t, func(t *testing.T, h *Host, level string) {
		if err := sh(t, h, Policy{Level: level, Write: []string{mine}}, "cat "+beside+" > "+mine+"/copy"); err != nil {
			t.Errorf("what is granted fails: %v", err)
		}
		for _, p := range []Policy{{Write: []string{mine}}, {Write: []string{mine}, Read: []string{mine}}} {
			p.Level = level
			_ = sh(t, h, p, "echo after > "+beside) // bubblewrap may give an empty folder to write to
			if got, err := os.ReadFile(beside); err != nil || string(got) != "before" {
				t.Errorf("the file beside the work is %q, %v", got, err)
			}
		}
		if err := sh(t, h, Policy{Level: level, Write: []string{mine}, Read: []string{mine}}, "cat "+beside); err == nil {
			t.Error("the file beside the work was read")
		}
	})
}

func TestShieldIsReadOnly(t *testing.T) {
	h := NewHost(os.Getenv("PATH"))
	if s := h.Support(schemas.SandboxBwrap); s.Missing != "" {
		t.Skip(s.Missing)
	}
	dir := t.TempDir()
	shield := filepath.Join(dir, "state")
	inner := filepath.Join(shield, "tmp")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	p := Policy{Level: schemas.SandboxBwrap, Write: []string{dir, inner}, Shield: []string{shield, filepath.Join(dir, "missing")}}
	if err := sh(t, h, p, "touch "+dir+"/file "+inner+"/file"); err != nil {
		t.Error(err)
	}
	if err := sh(t, h, p, "touch "+shield+"/file"); err == nil {
		t.Error("the shield was written")
	}
}

func TestChoose(t *testing.T) {
	bare := NewHost("") // without bubblewrap
	if _, err := bare.Choose(&schemas.Sandbox{Level: schemas.SandboxBwrap}); err == nil || !strings.Contains(err.Error(), "not installed") || !strings.Contains(err.Error(), "the best level here is") {
		t.Errorf("bwrap without bwrap: %v", err)
	}
	if s, err := bare.Choose(&schemas.Sandbox{Level: schemas.SandboxNone}); err != nil || s.Level != schemas.SandboxNone {
		t.Errorf("none: %v, %v", s, err)
	}
	nothing := &Host{probes: map[string]func() Support{}}
	for _, level := range Levels {
		nothing.probes[level] = func() Support { return Support{Level: level, Missing: "the moon is full"} }
	}
	if s, err := nothing.Choose(&schemas.Sandbox{}); err != nil || s.Level != schemas.SandboxNone || !strings.Contains(s.Missing, "moon") {
		t.Errorf("nothing: %v, %v", s, err)
	}
	if _, err := nothing.Choose(&schemas.Sandbox{Required: true}); err == nil || !strings.Contains(err.Error(), "moon") {
		t.Errorf("required: %v", err)
	}
}

// A fake bubblewrap that confines nothing is not taken for one.
func TestProbeFindsWhatDoesNotConfine(t *testing.T) {
	dir := t.TempDir()
	fake := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	s := NewHost(dir).Support(schemas.SandboxBwrap)
	if !strings.Contains(s.Missing, "it could make a file outside") {
		t.Errorf("Missing = %q", s.Missing)
	}
}

func BenchmarkStart(b *testing.B) {
	h := NewHost(os.Getenv("PATH"))
	dir := b.TempDir()
	for _, level := range Levels {
		b.Run(level, func(b *testing.B) {
			if s := h.Support(level); s.Missing != "" {
				b.Skip(s.Missing)
			}
			for b.Loop() {
				if _, err := h.run(Policy{Level: level, Write: []string{dir}}, "/bin/true", []string{"true"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A process tells another one what it found: that one confines by the program that was tried, and probes nothing.
func TestFoundIsNotProbedAgain(t *testing.T) {
	eachLevel(t, func(t *testing.T, h *Host, level string) {
		told := h.Support(level)
		name, value, _ := strings.Cut(told.Variable(), "=")
		other := NewHost("", Found(func(asked string) string { return map[string]string{name: value}[asked] })...) // finds no bwrap of its own
		other.probes = map[string]func() Support{level: other.probes[level]}
		if s := other.Support(level); s != told {
			t.Fatalf("told %+v, got %+v", told, s)
		}
		dir := t.TempDir()
		mine := filepath.Join(dir, "mine")
		if err := os.Mkdir(mine, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := sh(t, other, Policy{Level: level, Write: []string{mine}}, "echo x > "+mine+"/file && ! echo x > "+dir+"/file"); err != nil {
			t.Error(err)
		}
	})
	for _, said := range []string{"", "{", `{"level": "none"}`, `{"level": "all"}`} {
		if got := Found(func(string) string { return said }); got != nil {
			t.Errorf("%q: %+v", said, got)
		}
	}
}
