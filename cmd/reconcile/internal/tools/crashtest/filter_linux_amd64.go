package crashtest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// opening are the flags with which open changes a file.
const opening = unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY

// filter returns a program in classic BPF that stops the calls in shapes, of opens only those that change files, and
// lets all else pass.
func filter() []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	ret := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	prog := []unix.SockFilter{
		load(offsetArch), equal(unix.AUDIT_ARCH_X86_64, 1, 0), ret(unix.SECCOMP_RET_ALLOW), load(offsetNumber),
	}
	for _, nr := range slices.Sorted(maps.Keys(shapes)) {
		if flags := shapes[nr].flags; flags != 0 {
			prog = append(prog, equal(uint32(nr), 0, 4), load(offsetArgs+8*uint32(flags-1)),
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: opening, Jt: 0, Jf: 1},
				ret(unix.SECCOMP_RET_TRACE), ret(unix.SECCOMP_RET_ALLOW))
			continue
		}
		prog = append(prog, equal(uint32(nr), 0, 1), ret(unix.SECCOMP_RET_TRACE))
	}
	return append(prog, ret(unix.SECCOMP_RET_ALLOW))
}

// install makes a process that is stopped at its first instruction load the filter: it steps through two system
// calls that are written over that instruction, and restores the registers and the code.
func install(pid int) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(pid, &regs); err != nil {
		return fmt.Errorf("read registers: %w", err)
	}
	saved := make([]byte, 8)
	if _, err := syscall.PtracePeekText(pid, uintptr(regs.Rip), saved); err != nil {
		return fmt.Errorf("read instruction: %w", err)
	}
	code := append([]byte{0x0f, 0x05}, saved[2:]...) // syscall
	if _, err := syscall.PtracePokeText(pid, uintptr(regs.Rip), code); err != nil {
		return fmt.Errorf("write instruction: %w", err)
	}
	data := filter()
	block, at := encodeFilter(data, regs.Rsp)
	if _, err := syscall.PtracePokeData(pid, uintptr(at), block); err != nil {
		return fmt.Errorf("write filter: %w", err)
	}
	if err := inject(pid, regs, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := inject(pid, regs, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, at); err != nil {
		return fmt.Errorf("load filter: %w", err)
	}
	if _, err := syscall.PtracePokeText(pid, uintptr(regs.Rip), saved); err != nil {
		return fmt.Errorf("restore instruction: %w", err)
	}
	return syscall.PtraceSetRegs(pid, &regs)
}

// encodeFilter lays out struct sock_fprog and its instructions for an address well below the stack pointer.
func encodeFilter(prog []unix.SockFilter, stack uint64) (block []byte, at uint64) {
	at = (stack - 4096 - uint64(8*len(prog))) &^ 15
	le := binary.LittleEndian
	block = le.AppendUint64(block, uint64(len(prog)))
	block = le.AppendUint64(block, at+16)
	for _, i := range prog {
		block = le.AppendUint16(block, i.Code)
		block = append(block, i.Jt, i.Jf)
		block = le.AppendUint32(block, i.K)
	}
	return block, at
}

// inject performs one system call in the stopped process.
func inject(pid int, regs syscall.PtraceRegs, nr uint64, args ...uint64) error {
	regs.Rax, regs.Orig_rax = nr, nr
	for i, to := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.R10, &regs.R8} {
		*to = 0
		if i < len(args) {
			*to = args[i]
		}
	}
	if err := syscall.PtraceSetRegs(pid, &regs); err != nil {
		return err
	}
	if err := syscall.PtraceSingleStep(pid); err != nil {
		return err
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, syscall.WALL, nil); err != nil || !ws.Stopped() {
		return fmt.Errorf("step: %v, %w", ws, err)
	}
	if err := syscall.PtraceGetRegs(pid, &regs); err != nil {
		return err
	}
	if e := -int64(regs.Rax); e > 0 && e < 4096 {
		return syscall.Errno(e)
	}
	return nil
}
