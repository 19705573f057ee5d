package barrier_test

import (
	"testing"

	"github.com/gostmmac/gostmmac/barrier"
)

func BenchmarkDMARead(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		barrier.DMARead()
	}
}

func BenchmarkDMAWrite(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		barrier.DMAWrite()
	}
}

func BenchmarkDMARelease(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		barrier.DMARelease()
	}
}

func BenchmarkDMAFull(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		barrier.DMAFull()
	}
}

func BenchmarkIORead(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		barrier.IORead()
	}
}

func BenchmarkIOWrite(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		barrier.IOWrite()
	}
}

func BenchmarkLoadOwn(b *testing.B) {
	b.ReportAllocs()
	var w uint32
	for b.Loop() {
		barrier.LoadOwn(&w)
	}
}

func BenchmarkStoreOwn(b *testing.B) {
	b.ReportAllocs()
	var w uint32
	for b.Loop() {
		barrier.StoreOwn(&w, 1)
	}
}

func BenchmarkLoad32(b *testing.B) {
	b.ReportAllocs()
	var w uint32
	for b.Loop() {
		barrier.Load32(&w)
	}
}

func BenchmarkStore32(b *testing.B) {
	b.ReportAllocs()
	var w uint32
	for b.Loop() {
		barrier.Store32(&w, 1)
	}
}
