// Command straight calls a function without loops as often as its argument says.
package main

import (
	"os"
	"strconv"
)

//go:noinline
func work(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	return x
}

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		println("straight: bad argument")
		os.Exit(3)
	}
	x := uint64(1)
	for range n {
		x = work(x)
	}
	if x == 0 {
		os.Exit(4) // never: the generator does not reach zero
	}
}
