package pagepool_test

import (
	"errors"
	"fmt"

	"github.com/gostmmac/gostmmac/pagepool"
)

// identity is a device that sees the memory from bus address 0x8000_0000 on.
type identity struct{ next uint64 }

func (d *identity) MapDMA(mem []byte) (uint64, error) {
	at := 0x8000_0000 + d.next
	d.next += uint64(len(mem))
	return at, nil
}
func (d *identity) UnmapDMA(uint64, int) error { return nil }
func (d *identity) Coherent() bool             { return true }
func (d *identity) AllocDMA(int, int) ([]byte, uint64, error) {
	return nil, 0, errors.ErrUnsupported
}

func ExamplePool() {
	dev := &identity{}
	pool, err := pagepool.New(dev, 256, pagepool.WithHeadroom(64))
	if err != nil {
		fmt.Println(err)
		return
	}
	mapping, err := pool.Attach(dev)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := pool.Alloc()
	if err != nil {
		fmt.Println(err)
		return
	}
	b.SetData([]byte("payload"))
	copy(b.Prepend(7), "header ")
	_, addr, _ := mapping.View().Lookup(b)
	fmt.Printf("%q at %#x\n", b.Bytes(), addr)

	if err := mapping.Close(); err != nil {
		fmt.Println(err)
	}
	var leak *pagepool.LeakError
	if errors.As(pool.Close(), &leak) {
		fmt.Println(leak.Holders)
	}
	pool.Free(b) // the memory goes with the last buffer
	// Output:
	// "header payload" at 0x80000039
	// map[application:1]
}
