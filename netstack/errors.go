package netstack

import (
	"os"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// errnos are the errors of gVisor and what a system call would have returned
// (gVisor's pkg/syserr/netstack.go has the same pairs).
var errnos = []struct {
	err   tcpip.Error
	errno syscall.Errno
}{
	{&tcpip.ErrAborted{}, syscall.EPIPE},
	{&tcpip.ErrAddressFamilyNotSupported{}, syscall.EAFNOSUPPORT},
	{&tcpip.ErrAlreadyBound{}, syscall.EINVAL},
	{&tcpip.ErrAlreadyConnected{}, syscall.EISCONN},
	{&tcpip.ErrAlreadyConnecting{}, syscall.EALREADY},
	{&tcpip.ErrBadAddress{}, syscall.EFAULT},
	{&tcpip.ErrBadLocalAddress{}, syscall.EADDRNOTAVAIL},
	{&tcpip.ErrBroadcastDisabled{}, syscall.EACCES},
	{&tcpip.ErrClosedForSend{}, syscall.EPIPE},
	{&tcpip.ErrConnectionAborted{}, syscall.ECONNABORTED},
	{&tcpip.ErrConnectionRefused{}, syscall.ECONNREFUSED},
	{&tcpip.ErrConnectionReset{}, syscall.ECONNRESET},
	{&tcpip.ErrDestinationRequired{}, syscall.EDESTADDRREQ},
	{&tcpip.ErrHostDown{}, syscall.EHOSTDOWN},
	{&tcpip.ErrHostUnreachable{}, syscall.EHOSTUNREACH},
	{&tcpip.ErrInvalidEndpointState{}, syscall.EINVAL},
	{&tcpip.ErrMessageTooLong{}, syscall.EMSGSIZE},
	{&tcpip.ErrNetworkUnreachable{}, syscall.ENETUNREACH},
	{&tcpip.ErrNoBufferSpace{}, syscall.ENOBUFS},
	{&tcpip.ErrNoPortAvailable{}, syscall.EAGAIN},
	{&tcpip.ErrNotConnected{}, syscall.ENOTCONN},
	{&tcpip.ErrNotPermitted{}, syscall.EPERM},
	{&tcpip.ErrPortInUse{}, syscall.EADDRINUSE},
	{&tcpip.ErrTimeout{}, syscall.ETIMEDOUT},
}

// byText is the error number of an error of gVisor by its text, all that gonet
// leaves of it.
var byText = func() map[string]syscall.Errno {
	m := map[string]syscall.Errno{}
	for _, e := range errnos {
		m[e.err.String()] = e.errno
	}
	return m
}()

// unknownError is an error of gVisor for which there is no error number.
type unknownError struct{ text string }

func (e *unknownError) Error() string { return e.text }

// syscallError is an error of gVisor as package net reports that of a system call.
func syscallError(call string, err tcpip.Error) error { return textError(call, err.String()) }

func textError(call, text string) error {
	if errno, ok := byText[text]; ok {
		return os.NewSyscallError(call, errno)
	}
	return &unknownError{text}
}
