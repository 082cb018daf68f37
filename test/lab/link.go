package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Link carries one replica's connections to the API server, so that a test can let it hang for this one alone:
// connections stay open, and nothing passes.
type Link struct {
	listener net.Listener
	target   string

	mutex sync.Mutex
	// passing is closed while data may pass.
	passing chan struct{}
}

func newLink(ctx context.Context, target string) (*Link, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the link to the API server: %w", err)
	}
	l := &Link{listener: listener, target: target, passing: make(chan struct{})}
	close(l.passing)
	// The context bounds the start alone; the link lasts until it is closed.
	go l.accept(context.WithoutCancel(ctx))
	return l, nil
}

func (l *Link) address() string { return l.listener.Addr().String() }

// Pause lets nothing pass until Resume.
func (l *Link) Pause() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.passing = make(chan struct{})
}

// Resume lets everything pass that was held up.
func (l *Link) Resume() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case <-l.passing:
	default:
		close(l.passing)
	}
}

func (l *Link) gate() <-chan struct{} {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.passing
}

func (l *Link) accept(ctx context.Context) {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.carry(ctx, client)
	}
}

func (l *Link) carry(ctx context.Context, client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.target)
	if err != nil {
		_ = client.Close() // The replica sees a closed connection, as it would see the API server's.
		return
	}
	go l.copy(server, client)
	l.copy(client, server)
}

// copy passes data on until one side closes, and then closes the other.
func (l *Link) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-l.gate()
		if n > 0 {
			if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
				err = writeErr
			}
		}
		if err != nil {
			// Whoever still reads or writes meets the end of both.
			_ = errors.Join(to.Close(), from.Close())
			return
		}
	}
}

func (l *Link) close() error {
	// What hangs in it is let go, so that both sides meet the end.
	l.Resume()
	return l.listener.Close()
}
