package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"reconcile.dev/reconcile/schemas"
)

// The versions of Landlock that matter: oldestABI keeps files from being truncated, netABI knows ports, deviceABI controls of devices,
// scopeABI signals, and unixABI sockets in the file system.
const (
	oldestABI = 3
	netABI    = 4
	deviceABI = 5
	scopeABI  = 6
	unixABI   = 9
)

// Rights to files. What a kernel does not know is left out when they are used.
const (
	rightsOfFiles = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	reading       = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	writing       = reading | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeChar | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo |
		ll.AccessFSMakeBlock | ll.AccessFSMakeSym | ll.AccessFSIoctlDev
	working = writing | ll.AccessFSRefer | ll.AccessFSResolveUnix
)

// ruleset is what Landlock enforces on a program: at bwrap only what a mount namespace does not.
type ruleset struct {
	fd    int // negative: there is nothing to enforce
	files uint64
}

// abi is the kernel's version of Landlock; 0 if it has none.
func abi() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return version
}

// ruleset makes the rules of a policy.
func (p *Policy) ruleset() (*ruleset, error) {
	version := abi()
	attr := p.handled(version)
	switch {
	case p.Level != schemas.SandboxBwrap && version < oldestABI:
		return nil, tooOld(version)
	case p.Limited && version < netABI:
		return nil, fmt.Errorf("connections cannot be limited: Landlock of this kernel has version %d, and that needs %d", version, netABI)
	case attr == ll.RulesetAttr{}:
		return &ruleset{fd: -1}, nil
	}
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return nil, os.NewSyscallError("landlock_create_ruleset", err)
	}
	r := &ruleset{fd: fd, files: attr.HandledAccessFS}
	if r.files != 0 {
		err = r.grantFiles(p)
	}
	if err := errors.Join(err, r.grantPorts(p)); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// handled is what the rules are about: everything about it that they do not grant is refused.
func (p *Policy) handled(version int) (attr ll.RulesetAttr) {
	if version >= scopeABI {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	if p.Limited {
		attr.HandledAccessNet = ll.AccessNetConnectTCP
	}
	if p.Level == schemas.SandboxBwrap {
		return attr
	}
	attr.HandledAccessFS = working
	if version < deviceABI {
		attr.HandledAccessFS &^= ll.AccessFSIoctlDev
	}
	if version < unixABI {
		attr.HandledAccessFS &^= ll.AccessFSResolveUnix
	}
	return attr
}

func tooOld(abi int) error {
	if abi <= 0 {
		return errors.New("the kernel has no Landlock, or it is switched off")
	}
	return fmt.Errorf("version %d of Landlock, which this kernel has, is too old: before %d it does not keep files from being truncated", abi, oldestABI)
}

// grantFiles adds the rules about files.
func (r *ruleset) grantFiles(p *Policy) error {
	existing := map[string]uint64{"/dev/pts": writing}
	if !p.worksInShared() {
		existing[sharedMemory] = writing
	}
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"} {
		existing[device] = writing
	}
	if p.Read != nil {
		for _, path := range append(append(systemPaths(), "/proc"), p.devices()...) {
			existing[path] |= reading
		}
	} else if err := r.grant("/", reading); err != nil {
		return err
	}
	for _, path := range p.Read {
		existing[path] |= reading
	}
	for path, rights := range existing {
		if err := r.grant(path, rights); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, path := range p.Write {
		if err := r.grant(path, working); err != nil {
			return err
		}
	}
	return nil
}

// grant grants rights to a file, or to a folder and everything below it.
func (r *ruleset) grant(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	rule := ll.PathBeneathAttr{AllowedAccess: rights & r.files, ParentFd: fd}
	if err := ll.LandlockAddPathBeneathRule(r.fd, &rule, 0); err != nil {
		return fmt.Errorf("grant %s: %w", path, os.NewSyscallError("landlock_add_rule", err))
	}
	return nil
}

// grantPorts adds the rules about connections.
func (r *ruleset) grantPorts(p *Policy) error {
	if !p.Limited {
		return nil
	}
	for _, port := range p.Ports {
		rule := ll.NetPortAttr{AllowedAccess: ll.AccessNetConnectTCP, Port: uint64(port)}
		if err := ll.LandlockAddNetPortRule(r.fd, &rule, 0); err != nil {
			return fmt.Errorf("grant port %d: %w", port, os.NewSyscallError("landlock_add_rule", err))
		}
	}
	return nil
}

// enforced calls f on a thread of its own on which the rules are enforced: a process that f starts inherits them, this one does not. The
// thread ends with the call.
func (r *ruleset) enforced(f func() error) error {
	if r.fd < 0 {
		return f()
	}
	done := make(chan error, 1)
	go r.onThread(f, done)
	return <-done
}

// onThread enforces the rules on the thread of this goroutine, and calls f there. The thread is never used again. The first thread of
// the process, by which others know it, is not taken.
func (r *ruleset) onThread(f func() error, done chan<- error) {
	runtime.LockOSThread() // and never unlocked: so the thread ends with this goroutine
	if unix.Gettid() == unix.Getpid() {
		defer runtime.UnlockOSThread()
		other := make(chan error, 1)
		go r.onThread(f, other)
		done <- <-other
		return
	}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = ll.LandlockRestrictSelf(r.fd, 0)
	}
	if err == nil {
		err = f()
	} else {
		err = fmt.Errorf("the sandbox could not be made: %w", os.NewSyscallError("landlock_restrict_self", err))
	}
	done <- err
}

// close releases the rules. They stay enforced where they are.
func (r *ruleset) close() {
	if r.fd >= 0 {
		unix.Close(r.fd)
	}
}
