//go:build amd64 || arm64

package failsync

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Numbers of the interface to the kernel: linux/seccomp.h, linux/audit.h, linux/prctl.h.
const (
	noNewPrivs = 38

	modeFilter   = 1
	newListener  = 1 << 3
	waitKillable = 1 << 5 // a signal does not interrupt a call that waits, so decide is called once for each call

	userNotif = 0x7fc00000
	allow     = 0x7fff0000

	thirdArgument = 32 // its offset in a struct seccomp_data

	ioctlReceive = 0xc0502100
	ioctlSend    = 0xc0182101
	carryOut     = 1
)

// arch has the numbers that depend on the processor.
var arch = map[string]struct{ audit, seccomp, syncfs, renameat2 uint32 }{
	"amd64": {0xc000003e, 317, 306, 316},
	"arm64": {0xc00000b7, 277, 267, 276},
}[runtime.GOARCH]

// numbers has the system calls of each kind. The first argument of each is the file descriptor,
// except for Name and sync.
var numbers = map[Kind][]uint32{
	Sync:   {syscall.SYS_FSYNC, syscall.SYS_FDATASYNC, syscall.SYS_SYNC_FILE_RANGE, syscall.SYS_MSYNC, syscall.SYS_SYNC, arch.syncfs},
	Read:   {syscall.SYS_READ, syscall.SYS_PREAD64, syscall.SYS_GETDENTS64},
	Write:  {syscall.SYS_WRITE, syscall.SYS_PWRITE64},
	Length: {syscall.SYS_FTRUNCATE, syscall.SYS_FALLOCATE},
	Name:   {syscall.SYS_RENAMEAT, arch.renameat2, syscall.SYS_UNLINKAT},
	Drop:   {syscall.SYS_FADVISE64},
}

// wakeBytes is the size of the writes that are not shown: the runtime of Go wakes its poller with
// such a write. It keeps a processor meanwhile, so the program would stand still if the garbage
// collector waits for this processor, and the supervisor for the garbage collector.
const wakeBytes = 8

// last is a descriptor that no file has. A sync of it ends the supervisor.
const last = -1

// watch returns an error if the kernel refuses the filter. Then it has not called f.
func watch(kinds Kind, decide func(Call) error, f func()) (err error) {
	kindOf := map[uint32]Kind{syscall.SYS_FSYNC: Sync}
	for kind, list := range numbers {
		if kinds&kind != 0 {
			for _, number := range list {
				kindOf[number] = kind
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so the thread ends with this goroutine
		var listener int
		if listener, err = install(kindOf); err != nil {
			return
		}
		s := &supervisor{listener: listener, kinds: kinds, kindOf: kindOf, decide: decide, ended: make(chan struct{})}
		go s.run()
		defer func() {
			_ = syscall.Fsync(last)
			<-s.ended
			err = s.err
		}()
		f()
	}()
	<-done
	return err
}

// install makes the kernel stop the given calls of this thread. It returns the descriptor that
// reports them.
func install(kindOf map[uint32]Kind) (int, error) {
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: 4}, // the architecture of the call
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jt: 1, K: arch.audit},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: allow},
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: 0}, // its number
	}
	if kindOf[syscall.SYS_WRITE] != 0 { // not if it has wakeBytes
		filter = append(filter,
			syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 4, K: syscall.SYS_WRITE},
			syscall.SockFilter{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: thirdArgument},
			syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 1, K: wakeBytes},
			syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: allow},
			syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: userNotif})
	}
	for number := range kindOf {
		filter = append(filter,
			syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 1, K: number},
			syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: userNotif})
	}
	filter = append(filter, syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: allow})
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return 0, fmt.Errorf("prctl: %w", errno)
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := syscall.RawSyscall(uintptr(arch.seccomp), modeFilter, newListener|waitKillable, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, fmt.Errorf("seccomp: %w; it needs Linux 5.19, and a container must allow it", errno)
	}
	return int(fd), nil
}

// supervisor decides about the calls of one thread.
type supervisor struct {
	listener int
	kinds    Kind
	kindOf   map[uint32]Kind
	decide   func(Call) error
	ended    chan struct{}
	err      error
}

// notice is a struct seccomp_notif: a call that waits for a decision.
type notice struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	_          uint64
	args       [6]uint64
}

// reply is a struct seccomp_notif_resp.
type reply struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

func (s *supervisor) run() {
	defer close(s.ended)
	defer func() { _ = syscall.Close(s.listener) }() // after it, calls of the thread fail with ENOSYS
	for {
		var n notice
		if err := s.ioctl(ioctlReceive, unsafe.Pointer(&n)); errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ENOENT) { // ENOENT: a signal has interrupted the call, which is made again
			continue
		} else if err != nil {
			s.err = fmt.Errorf("cannot receive a call: %w", err)
			return
		}
		r := reply{id: n.id}
		end := n.number == syscall.SYS_FSYNC && int32(n.args[0]) == last
		if end {
			r.errno = -int32(syscall.EBADF)
		} else {
			s.decideOn(&n, &r)
		}
		if err := s.ioctl(ioctlSend, unsafe.Pointer(&r)); err != nil {
			s.err = fmt.Errorf("cannot answer a call: %w", err)
			return
		}
		if end {
			return
		}
	}
}

// decideOn fills in the reply to a call.
func (s *supervisor) decideOn(n *notice, r *reply) {
	c := Call{Kind: s.kindOf[uint32(n.number)]}
	if c.Kind != Name && n.number != syscall.SYS_SYNC {
		c.Path, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", int32(n.args[0]))) // a bad descriptor has no path
	}
	var err error
	if c.Kind&s.kinds != 0 {
		err = s.decide(c)
	}
	errno, failed := errors.AsType[syscall.Errno](err)
	switch {
	case err == nil:
		r.flags = carryOut
	case failed:
		r.errno = -int32(errno)
	case !errors.Is(err, ErrSkip):
		panic(fmt.Sprintf("failsync: a decision must be nil, ErrSkip or a syscall.Errno, got %v", err))
	}
}

func (s *supervisor) ioctl(request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(s.listener), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}
