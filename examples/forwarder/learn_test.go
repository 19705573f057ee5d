package main

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// etherFrame is the beginning of a frame, with a tag unless vlan is negative.
func etherFrame(dst, src uint64, vlan int) []byte {
	b := binary.BigEndian.AppendUint64(nil, dst<<16)[:6]
	b = append(b, binary.BigEndian.AppendUint64(nil, src<<16)[:6]...)
	if vlan >= 0 {
		b = binary.BigEndian.AppendUint16(b, tpidVLAN)
		b = binary.BigEndian.AppendUint16(b, uint16(vlan))
	}
	return append(b, make([]byte, 60-len(b))...)
}

func TestForwardRules(t *testing.T) {
	const a, b, c = 0x020000000001, 0x020000000002, 0x020000000003
	type step struct {
		side     uint8
		dst, src uint64
		vlan     int
		at       time.Duration
		want     bool
	}
	for _, tc := range []struct {
		name  string
		steps []step
	}{
		{"unknown destination", []step{{0, b, a, -1, 0, true}}},
		{"known on its own side", []step{{0, b, a, -1, 0, true}, {0, a, b, -1, 0, false}, {0, b, a, -1, 0, false}}},
		{"known on the other side", []step{{0, b, a, -1, 0, true}, {1, a, b, -1, 0, true}, {0, b, a, -1, 0, true}}},
		{"moved to the other side", []step{{0, b, a, -1, 0, true}, {1, b, a, -1, 0, true}, {0, a, c, -1, 0, true}, {1, a, c, -1, 0, false}}},
		{"old", []step{{0, b, a, -1, 0, true}, {0, a, b, -1, ageingTime, false}, {0, a, b, -1, ageingTime + 1, true}}},
		{"refreshed", []step{{0, b, a, -1, 0, true}, {0, b, a, -1, ageingTime, true}, {0, a, c, -1, 2 * ageingTime, false}}},
		{"broadcast", []step{{0, 0xffffffffffff, a, -1, 0, true}, {1, 0xffffffffffff, b, -1, 0, true}}},
		{"a group is not learned", []step{{0, b, 1<<40 | a, -1, 0, true}, {0, 1<<40 | a, b, -1, 0, true}}},
		{"no source", []step{{0, a, 0, -1, 0, true}, {0, 0, b, -1, 0, true}}},
		{"reserved", []step{{0, 0x0180c2000000, a, -1, 0, false}, {0, 0x0180c200000f, a, -1, 0, false},
			{0, 0x0180c2000010, a, -1, 0, true}, {0, a, b, -1, 0, false}}},
		{"a VLAN is a network of its own", []step{{0, b, a, 5, 0, true}, {0, a, b, 6, 0, true}, {0, a, b, -1, 0, true}, {0, a, b, 5, 0, false}}},
		{"priority does not matter", []step{{0, b, a, 0xe005, 0, true}, {0, a, b, 5, 0, false}}},
		{"a priority tag is no VLAN", []step{{0, b, a, 0xe000, 0, true}, {0, a, b, -1, 0, false}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			table := newTable(learnLimit, ageingTime)
			for i, s := range tc.steps {
				if got := table.forward(s.side, etherFrame(s.dst, s.src, s.vlan), s.at); got != s.want {
					t.Fatalf("step %d: forwarded: %v", i, got)
				}
			}
		})
	}
	if newTable(1, 1).forward(0, make([]byte, 13), 0) {
		t.Error("a frame without a header was forwarded")
	}
}

// TestTable compares the table with a map, for few stations in a small table,
// so that it fills, ages and is swept.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit, age = 8, 10 * time.Second
		table := newTable(limit, age)
		table.seed = rapid.Uint64().Draw(t, "seed")
		type entry struct {
			side uint8
			seen time.Duration
		}
		known := map[station]entry{} // what may be found, and if so how
		now := time.Duration(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
			s := station(rapid.IntRange(1, 20).Draw(t, "station"))
			e, was := known[s]
			live := was && now-e.seen <= age
			side, ok := table.lookup(s, now)
			if ok != live || ok && side != e.side {
				t.Fatalf("station %d at %v: side %d, %v; want %+v, %v", s, now, side, ok, e, live)
			}
			side = uint8(rapid.IntRange(0, 1).Draw(t, "side"))
			lost := table.unlearned
			table.learn(s, side, now)
			if table.unlearned == lost {
				known[s] = entry{side, now}
			} else {
				if live {
					t.Fatalf("station %d was known and is not any more", s)
				}
				// No room is an excuse while the table is full of stations, or
				// of old ones that the last sweep was too soon for.
				if table.used < limit {
					t.Fatalf("no room for station %d among %d", s, table.used)
				}
				fresh := 0
				for _, e := range known {
					if now-e.seen <= age {
						fresh++
					}
				}
				if fresh < limit && now-table.swept >= sweepEvery {
					t.Fatalf("no room for station %d among %d", s, fresh)
				}
			}
			if table.used > limit {
				t.Fatalf("%d stations", table.used)
			}
		}
	})
}

func TestTableFull(t *testing.T) {
	table := newTable(learnLimit, ageingTime)
	for i := range station(2 * learnLimit) {
		table.learn(i+1, 1, 0)
	}
	found := 0
	for i := range station(2 * learnLimit) {
		if _, ok := table.lookup(i+1, 0); ok {
			found++
		}
	}
	// A run that is longer than maxProbe is possible, if not to be expected.
	if found != table.used || found > learnLimit || found < learnLimit*9/10 || table.unlearned != uint64(2*learnLimit-found) {
		t.Errorf("%d found, %d used, %d not learned", found, table.used, table.unlearned)
	}
	// All of them are old now: others take their place.
	later := ageingTime + 1
	for i := range station(learnLimit / 2) {
		table.learn(1<<20+i, 0, later)
	}
	for i := range station(learnLimit / 2) {
		if side, ok := table.lookup(1<<20+i, later); !ok || side != 0 {
			t.Fatalf("station %d was not learned", 1<<20+i)
		}
	}
}

func TestTableDoesNotAllocate(t *testing.T) {
	table := newTable(64, time.Second)
	frame := etherFrame(1, 2, 3)
	now, n := time.Duration(0), uint64(0)
	if a := testing.AllocsPerRun(1000, func() {
		n++
		now += 20 * time.Millisecond // 50 stations live, so that sweeps happen
		binary.BigEndian.PutUint32(frame[8:], uint32(n))
		table.forward(0, frame, now)
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
	if table.swept < 0 {
		t.Error("no sweep")
	}
}
