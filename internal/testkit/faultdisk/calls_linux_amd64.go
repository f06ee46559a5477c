package faultdisk

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// System calls that later architectures lack.
func init() {
	calls[unix.SYS_RENAME] = call{op: "rename", fd: -1, path: 0, to: 1}
	calls[unix.SYS_UNLINK] = call{op: "remove", fd: -1, path: 0, to: -1}
	calls[unix.SYS_RMDIR] = call{op: "remove", fd: -1, path: 0, to: -1}
	calls[unix.SYS_MKDIR] = call{op: "mkdir", fd: -1, path: 0, to: -1}
	calls[unix.SYS_LINK] = call{op: "link", fd: -1, path: 0, to: 1}
	opens[unix.SYS_OPEN] = 1
}
