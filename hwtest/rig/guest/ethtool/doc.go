// Package ethtool asks Linux for what ethtool(8) shows of an interface and changes it, by the
// ioctls of linux/ethtool.h: link, driver, statistics, self-tests, pause, coalescing,
// features and rings.
//
// Start reading at [Open]. Elsewhere than on Linux, Open returns an error that is
// errors.ErrUnsupported. The package may import golang.org/x/sys.
package ethtool
