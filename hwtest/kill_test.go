//go:build hwtest

package hwtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

func killTests() []test {
	return []test{{"kill/in-mid-traffic", []need{process()}, kill}}
}

// running is what the process that is killed prints when frames are under way.
const running = "running"

// kill has another process of these tests open the device and send through the
// loopback of the MAC, kills it, and opens the device again.
func kill(r *rig) {
	for range r.scale(20, 3) {
		r.must(r.env.shut())
		err := killOnce(r.env.ctx, r.env.address)
		r.must(errors.Join(err, r.env.open()))
		r.open()
		r.bothWays(shortest, 777, 1514)
		r.close()
		r.figure("killed", 1)
	}
}

func killOnce(ctx context.Context, device string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel() // kills it in any case
	c := exec.CommandContext(ctx, self, "-child", "-device", device, "-peer", "mac-loopback")
	var text strings.Builder
	c.Stderr = &text
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil && strings.TrimSpace(line) == running {
		err = c.Process.Kill()
	} else {
		cancel()
	}
	_ = c.Wait() // it was killed, which is no success
	if err != nil || strings.TrimSpace(line) != running {
		return fmt.Errorf("the process to kill did not come so far: %w\n%s", errors.Join(err, ctx.Err()), text.String())
	}
	return nil
}

// beKilled sends through the loopback of the MAC until the process is killed, or
// for a while: nobody else ends it if the test itself was killed.
func beKilled(f *flags) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if err := sendForEver(ctx, f.device); err != nil {
		fmt.Fprintln(os.Stderr, "hwtest:", err)
		return 1
	}
	return 0
}

func sendForEver(ctx context.Context, device string) (err error) {
	h, err := bus.NewOpener().Open(ctx, device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	m, err := stmmac.Open(ctx, h.Device, append(h.Options, stmmac.WithPromiscuous())...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := m.SetLoopback(true); err != nil {
		return err
	}
	bufs := make([]*pagepool.Buf, 64)
	const enough = 1000
	for n := uint64(0); ctx.Err() == nil; {
		f := frame(peer.PeerAddr(), peer.DeviceAddr(), loadSize(n), n)
		b, err := m.Pool().AllocFrame(f, 0)
		if err == nil {
			sent := 0
			if sent, err = m.Tx(0).Send([]*pagepool.Buf{b}); sent == 0 {
				m.Pool().Free(b)
			}
		} else if errors.Is(err, pagepool.ErrEmpty) {
			err = nil
		}
		if err != nil {
			return err
		}
		m.Tx(0).Reap(nil)
		k := m.Rx(0).Recv(bufs)
		m.Pool().FreeBatch(bufs[:k])
		if n < enough && n+uint64(k) >= enough {
			fmt.Println(running)
		}
		if n += uint64(k); k == 0 {
			time.Sleep(loadPause)
		}
	}
	return nil
}
