package stmmac

// MonitorPass lets the monitor deal with what has happened until now, on the
// goroutine of the test.
func (m *MAC) MonitorPass() { m.monitor.pass() }

// Rebuilding says that the registers are kept from the queues.
func (m *MAC) Rebuilding() bool { return m.registers.again.Load() != nil }

// Ending says whether Close has begun.
func (m *MAC) Ending() bool { return m.life.Err() != nil }
