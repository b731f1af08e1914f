package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"reconcile.dev/reconcile/schemas"
)

const (
	helperName = "__confined"
	probeName  = "__probe"

	// confined is what the helper reports before it becomes the program; what follows is why it did not.
	confined = "confined\n"

	// oldestABI is the first version of Landlock that keeps files from being truncated, and netABI the first one that knows ports.
	oldestABI = 3
	netABI    = 4
)

// Main returns if args are not those of a helper. Otherwise it becomes the program that they name, or ends the process.
func Main(args []string) {
	switch {
	case len(args) < 2:
	case args[1] == probeName:
		os.Exit(attempts(args[2:]))
	case args[1] == helperName:
		os.Exit(become(args[2:]))
	}
}

// become confines this process and executes a program: args are a policy, the program's path, and its arguments from argv[0] on.
func become(args []string) int {
	report := os.NewFile(reportFD, "report")
	syscall.CloseOnExec(reportFD)
	syscall.CloseOnExec(programFD)
	var p Policy
	if len(args) < 3 {
		return 1
	}
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		fmt.Fprint(report, err)
		return 1
	}
	if err := p.apply(); err != nil {
		fmt.Fprint(report, err)
		return 1
	}
	if _, err := report.WriteString(confined); err != nil {
		return 1
	}
	err := execute(args[1], args[2:])
	var number syscall.Errno
	if errors.As(err, &number) {
		fmt.Fprint(report, strconv.Itoa(int(number)))
	}
	return 1
}

// execute becomes a program. One that was written a moment ago may still be open for writing in a process that is being started.
func execute(path string, argv []string) (err error) {
	for wait := time.Millisecond; ; wait *= 2 {
		if err = syscall.Exec(path, argv, os.Environ()); !errors.Is(err, syscall.ETXTBSY) || wait > 256*time.Millisecond {
			return err
		}
		time.Sleep(wait)
	}
}

// apply confines this process by Landlock, at bwrap only what its mount namespace does not.
func (p *Policy) apply() error {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		abi = 0
	}
	all := landlock.V9
	c := landlock.Config{Scoped: all.Scoped}
	var rules []landlock.Rule
	if p.Level != schemas.SandboxBwrap {
		if abi < oldestABI {
			return tooOld(abi)
		}
		c.HandledAccessFS = all.HandledAccessFS
		if rules, err = p.paths(); err != nil {
			return err
		}
	}
	if p.Limited {
		if abi < netABI {
			return fmt.Errorf("connections cannot be limited: Landlock of this kernel has version %d, and that needs %d", abi, netABI)
		}
		c.HandledAccessNet = ll.AccessNetConnectTCP
		for _, port := range p.Ports {
			rules = append(rules, landlock.ConnectTCP(uint16(port)))
		}
	}
	return c.BestEffort().Restrict(rules...)
}

func tooOld(abi int) error {
	if abi <= 0 {
		return errors.New("the kernel has no Landlock, or it is switched off")
	}
	return fmt.Errorf("version %d of Landlock, which this kernel has, is too old: before %d it does not keep files from being truncated", abi, oldestABI)
}

// paths are the rules for files.
func (p *Policy) paths() ([]landlock.Rule, error) {
	rules := []landlock.Rule{
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx").WithIoctlDev().IgnoreIfMissing(),
		landlock.RWDirs("/dev/pts", "/dev/shm").WithIoctlDev().IgnoreIfMissing(),
	}
	if p.Read == nil {
		rules = append(rules, landlock.RODirs("/"))
	} else {
		rules = append(rules, landlock.RODirs("/proc", "/dev").IgnoreIfMissing())
		rules = append(rules, landlock.RODirs(systemPaths()...).IgnoreIfMissing())
	}
	for _, path := range p.Read {
		rule := landlock.RODirs(path)
		if !isDir(path) {
			rule = landlock.ROFiles(path)
		}
		rules = append(rules, rule.IgnoreIfMissing())
	}
	for _, path := range p.Write {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		if isDir(path) {
			rules = append(rules, landlock.RWDirs(path).WithRefer().WithIoctlDev().WithResolveUnix())
		} else {
			rules = append(rules, landlock.RWFiles(path).WithIoctlDev())
		}
	}
	return rules, nil
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
