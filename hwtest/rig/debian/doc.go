// Package debian keeps a folder with programs of a Debian suite, unpacked but not
// installed, and runs them there: the judges of the rigs are newer than what the
// machine has.
//
// The packages come from the machine's own mirror, in the way in which apt on the
// machine reaches it, and apt checks their signatures. apt works in a folder of
// its own, so nothing is installed and root is not needed. Versions are what the suites
// have at the time; [Manifest] records them.
//
// Start reading at [Setup]. It needs Linux, apt and dpkg-deb.
package debian
